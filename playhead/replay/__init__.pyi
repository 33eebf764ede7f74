# The public names, each with its home: what a type checker sees, and what `__init__.py` loads when it is first used.

from playhead.replay.blame import Blame as Blame
from playhead.replay.blame import Part as Part
from playhead.replay.blame import find_cause as find_cause
from playhead.replay.corpus import Corpus as Corpus
from playhead.replay.corpus import replay_corpus as replay_corpus
from playhead.replay.decisions import Decision as Decision
from playhead.replay.decisions import decide as decide
from playhead.replay.divergence import Divergence as Divergence
from playhead.replay.engine import ReplayResult as ReplayResult
from playhead.replay.engine import replay as replay
from playhead.replay.forking import fork as fork
from playhead.replay.missing import MissedCall as MissedCall
from playhead.replay.overrides import Overrides as Overrides
from playhead.replay.overrides import ResultOverride as ResultOverride
from playhead.replay.overrides import ToolFault as ToolFault
from playhead.replay.prefix import DID_NOT_HAPPEN as DID_NOT_HAPPEN
from playhead.replay.prefix import UnresolvedCall as UnresolvedCall
from playhead.replay.recording import Recording as Recording
from playhead.replay.recording import load_recording as load_recording
from playhead.replay.reproduction import Reproduction as Reproduction
from playhead.replay.reproduction import reproduce as reproduce
from playhead.replay.resume_run import resume as resume
from playhead.replay.resume_run import resume_sync as resume_sync
from playhead.replay.success import Judge as Judge
