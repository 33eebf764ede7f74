// Word diffs: what only one of two texts has is marked in it.

const MOST_CELLS = 400000;
const LEAST = 0.5; // of the words of the shorter text; with less in common the texts are others

function wordsOf(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** Mark in two elements, which hold only text, the words that the other one does not have. */
function markWords(one, other) {
  const [a, b] = [wordsOf(one.textContent), wordsOf(other.textContent)];
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  let kept = commonWords(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const isWord = (word) => word.trim() !== "";
  const common = a.filter((word, place) => isWord(word) && (place < start || place >= a.length - end || kept[0].has(place - start)));
  if (common.length < LEAST * Math.min(a.filter(isWord).length, b.filter(isWord).length)) kept = [new Set(), new Set()];
  const isKept = (side, words, place) => place < start || place >= words.length - end || kept[side].has(place - start);
  rewrite(one, a, (place) => isKept(0, a, place), "del");
  rewrite(other, b, (place) => isKept(1, b, place), "ins");
}

/** Return for each side the places of a longest common subsequence; of none, when the texts are too long for it. */
function commonWords(a, b) {
  const kept = [new Set(), new Set()];
  if (a.length * b.length > MOST_CELLS) return kept;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [below, right] = [lengths[(i + 1) * width + j], lengths[i * width + j + 1]];
      lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(below, right);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      kept[0].add(i++);
      kept[1].add(j++);
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return kept;
}

function rewrite(element, words, isKept, name) {
  const runs = [];
  words.forEach((word, place) => {
    const kept = isKept(place);
    if (runs.at(-1)?.kept === kept) runs.at(-1).text += word;
    else runs.push({ kept, text: word });
  });
  element.replaceChildren(...runs.map(({ kept, text }) => (kept ? text : h(name, {}, text))));
}
