"""Chats with an agent: messages that build on each other, each answered by a run of its own. See `Agent.session`."""

from playhead.agent.chat.log import ChatMessage
from playhead.agent.chat.session import ChatReply, ChatSession

__all__ = ["ChatMessage", "ChatReply", "ChatSession"]
