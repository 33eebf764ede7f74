"""Calls that an adversary of the healer found to be read as another one: each is refused, whatever else is learned."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec

TYPES: Final[dict[str, dict[str, Any]]] = {
    "": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "d": {"type": "string", "format": "date"},
    "p": {"type": "string", "format": "file-path"},
}


def tool(written: str, said: str = "", *, reads: bool = False) -> ToolSpec:
    """Return the tool that is written as `name(parameter:type, optional?:type)`; a type may be choices, as in `a|b`."""
    found = re.fullmatch(r"(\w+)\((.*)\)", written)
    assert found is not None
    parts = [part.strip().partition(":") for part in found[2].split(",") if part.strip()]
    known = {
        name.rstrip("?"): {"type": "string", "enum": kind.split("|")} if "|" in kind else TYPES[kind]
        for name, _, kind in parts
    }
    needed = [name for name, _, _ in parts if not name.endswith("?")]
    schema = {"type": "object", "properties": known, "required": needed, "additionalProperties": False}
    return ToolSpec(name=found[1], description=said or found[1].replace("_", " "), parameters=schema, read_only=reads)


CHANGES: Final[list[tuple[str, str, str, dict[str, Any]]]] = [
    ("delete_issue(issue:i)", "Delete an issue with its comments", "delete_issue_comment", {"issue": 3}),
    ("delete_table(table)", "Delete a table and every row", "delete_table_rows", {"table": "t"}),
    ("delete_repo(repo)", "Delete a repo and each branch", "delete_repo_branch", {"repo": "r"}),
    ("cancel_order(order)", "Cancel an order with every item", "cancel_order_item", {"order": "1"}),
    ("delete_database(database)", "Delete a database. A backup is kept", "delete_database_backup", {"database": "d"}),
    ("create_user(user, group)", "Create a user in a group", "add_user_to_group", {"user": "u", "group": "g"}),
    ("create_event(event, attendees?)", "Create an event with attendees", "add_event_attendees", {"event": "e", "attendees": "a"}),
    ("create_issue(title)", "Create an issue to comment on", "create_issue_comment", {"title": "t"}),
    ("write_file(path, content)", "Write a file", "add_to_file", {"path": "a", "content": "b"}),
    ("write_file(path, content)", "Write a file", "insert_file", {"path": "a", "content": "b"}),
    ("write_file(path, content)", "Write a file", "append_file", {"path": "a", "content": "b"}),
    ("create_payment(customer_id, amount:n)", "Charge the customer", "record_payment", {"customer_id": "c", "amount": 5}),
    ("create_payment(customer_id, amount:n)", "Charge the customer", "schedule_payment", {"customer_id": "c", "amount": 5}),
    ("create_file(path, content?)", "Create a file", "open_file", {"path": "a"}),
    ("submit_order(order_id)", "Submit an order", "save_order", {"order_id": "1"}),
    ("update_branch(branch)", "Update a branch with the latest upstream", "change_branch", {"branch": "b"}),
    ("update_branch(branch)", "Update a branch with the latest upstream", "git_change_branch", {"branch": "b"}),
    ("create_table(name)", "Create a table in the database", "book_table", {"name": "b"}),
    ("create_file(path, content?)", "Create a file", "git_add_file", {"path": "a"}),
    ("create_order(order_id)", "Create an order", "order_refund", {"order_id": "1"}),
    ("create_request(pr)", "Create a request for review", "request_review", {"pr": "1"}),
    ("submit_draft(draft)", "Submit the draft of an order", "draft_order", {"draft": "1"}),
    ("discord_send_message(channel, text)", "Send a message", "slack_send_message", {"channel": "c", "text": "t"}),
    ("github_create_issue(title, body)", "Create an issue", "create_jira_issue", {"title": "t", "body": "b"}),
    ("create_issue(title, body)", "Create a GitHub issue", "create_zendesk_ticket", {"title": "t", "body": "b"}),
    ("drop_mysql_table(table)", "Drop a table", "drop_postgres_table", {"table": "t"}),
    ("delete_github_issue(issue:i)", "Delete an issue", "delete_jira_issue", {"issue": 1}),
    ("run_command(command, cwd?)", "Run a command", "execute_git_command", {"command": "status"}),
    ("run_command(command, cwd?)", "Run a command", "run_redis_command", {"command": "FLUSHALL"}),
    ("create_issue(repo, title?)", "Create an issue", "issues", {"repo": "r"}),
    ("create_payment(customer)", "Create a payment", "stripe_payments", {"customer": "c"}),
    ("create_branch(owner, repo, branch)", "Create a branch", "github_branch", {"owner": "o", "repo": "r", "branch": "b"}),
    ("create_user(email)", "Create a user", "user", {"email": "a@b.co"}),
    ("submit_payment(payment_id)", "Submit a payment", "payment", {"payment_id": "p"}),
    ("send_message(message_id)", "Send a message", "message", {"message_id": "m"}),
    ("remove_customer(client_id)", "Remove a customer", "remove_client", {"client_id": "c"}),
    ("delete_photo(photo)", "Delete a photo", "delete_image", {"photo": "p"}),
    ("delete_command(command)", "Delete a command", "bash", {"command": "ls"}),
    ("approve_command(command)", "Approve a command", "run_in_terminal", {"command": "ls"}),
    ("run_remote_command(command)", "Run a command on the production server", "bash", {"command": "ls"}),
    ("docker_exec(command)", "Run a command in a container", "local_shell", {"command": "ls"}),
    ("update_tickets(status?:open|done, assignee?)", "Update tickets", "update_tickets", {"filters": {"status": "open"}, "assignee": "bob"}),
    ("set_priority(id, reason, priority?:low|high)", "Set the priority", "set_priority", {"id": "1", "value": "high"}),
    ("run_command(command)", "Run a command", "run_command", {"input": "y"}),
    ("delete_user(user_id)", "Delete a user", "delete_user", {"input": "please delete bob"}),
    ("create_issue(title, body)", "Create an issue", "create_issue", {"title": "t", "body": "b", "description": "Crash happens on startup daily"}),
    ("transfer(to, amount:n)", "Transfer money", "transfer", {"to": "a", "amount": 5, "description": "Payment of the invoice from Smith"}),
    ("refund(payment_intent)", "Refund a payment", "refund", {"charge": "ch_1"}),
    ("create_invoice(customer, due_date?:d, issue_date?:d)", "Create an invoice", "create_invoice", {"customer": "c", "date": "2026-01-01"}),
    ("report(period:today|last_week|this_week)", "Report", "report", {"period": "week"}),
    ("pay(currency:aud|usd|cad)", "Pay", "pay", {"currency": "dollar"}),
    ("start(begin:d)", "Start it", "start", {"begin": {"after": "2026-01-01"}}),
]  # fmt: skip
LOOKS: Final[list[tuple[str, str, str, Any]]] = [
    ("get_file_info(path)", "Get the metadata of a file", "read_file", {"path": "a"}),
    ("view_history(path)", "View the history of a file", "read_file", {"path": "a"}),
    ("list_issues(owner, repo)", "List the issues of a repository", "get_repo", {"owner": "o", "repo": "r"}),
    ("list_orders(customer_id)", "List the orders of a customer", "get_customer", {"customer_id": "c"}),
    ("search_hotels(from, to)", "Search hotels. For flights use book", "search_flights", {"from": "a", "to": "b"}),
    ("list_messages(folder)", "List messages. Unread ones are bold", "get_unread_messages", {"folder": "f"}),
    ("list_invoices(overdue?:b, year?:i)", "List invoices", "list_overdue_invoices", {"year": 2026}),
    ("search_gmail(query)", "Search mail", "search_slack", {"query": "x"}),
    ("query_mysql(sql)", "Query the database", "query_postgres", {"sql": "x"}),
    ("search(query)", "Search the company wiki", "google_search", {"query": "x"}),
    ("search_files(path, pattern)", "Search files by name", "grep", {"path": "a", "pattern": "TODO"}),
    ("list_users(path?)", "List users", "ls", {"path": "a"}),
    ("get_weather(city)", "Get the weather", "get_weather", "see above"),
    ("get_weather(city)", "Get the weather", "get_weather", "please ask the user"),
    ("get_weather(city)", "Get the weather", "get_weather", "$city"),
    ("get_weather(city)", "Get the weather", "get_weather", "city"),
]
TEXTS: Final = [
    "delete_file(path: string)",
    "delete_file{path:string}",
    "declaration:delete_file{path:string}",
    "delete_file(path=tmpPath)",
    "delete_file(path=TMP_FILE)",
    "delete_file(path=config.path)",
    "delete_file(path=files[0])",
    "delete_file(path=base+name)",
    "delete_file{path:file_path}",
    "delete_file{path: the path from the search}",
    "delete_file(path=a.txt, b.txt)",
    'use `delete_file`: {"path": "string"}',
    'delete_file("path")',
]


@pytest.mark.parametrize(
    ("written", "said", "name", "arguments"), CHANGES, ids=[f"{each[2]}-{place}" for place, each in enumerate(CHANGES)]
)
def test_nothing_is_changed_by_another_call(written: str, said: str, name: str, arguments: Any):
    """A tool that changes something does not run for a name, a field or a value that may say another thing."""
    spec = tool(written, said)
    assert heal(name, arguments, {spec.name: spec}).arguments is None


@pytest.mark.parametrize(
    ("written", "said", "name", "arguments"), LOOKS, ids=[f"{each[2]}-{place}" for place, each in enumerate(LOOKS)]
)
def test_nothing_else_is_looked_up(written: str, said: str, name: str, arguments: Any):
    """A tool that looks something up does not run for a name that asks for another thing, or for less of it."""
    spec = tool(written, said, reads=True)
    assert heal(name, arguments, {spec.name: spec}).arguments is None


@pytest.mark.parametrize("text", TEXTS)
def test_a_signature_or_a_variable_is_no_value(text: str):
    """What a call in text has in place of a value is not taken for one."""
    spec = tool("delete_file(path)", "Delete a file")
    calls = [
        heal(call.name or "", call.arguments, {spec.name: spec}) for call in read_calls(text, {spec.name: spec})[0]
    ]
    assert [call for call in calls if call.arguments is not None] == []
