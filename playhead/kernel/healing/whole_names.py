"""Names of parameters that callers use for each other as a whole: `pageSize` and `per_page`, `start_time` and `time_min`."""

from __future__ import annotations

from typing import Final

from playhead.kernel.healing.synonyms import NAMES
from playhead.kernel.healing.words import words

_WHOLE_LINES: Final = """
head first_lines head_lines first_n_lines n_first_lines num_first_lines head_count
tail last_lines tail_lines last_n_lines n_last_lines num_last_lines tail_count
path start_path base_path root_path search_path
exclude_patterns exclude ignore excludes ignore_patterns excluded_patterns ignored excluded exclude_globs
since after start_date from from_date since_date updated_since updated_after start date_from start_time
until before end_date to to_date until_date updated_before end date_to end_time
time_min start start_time from after start_date min_time time_from since starts_after
time_max end end_time to before end_date until max_time time_to ends_before
owner user username org organization account repo_owner
direction order sort_order sort_direction sort_dir order_direction
per_page limit page_size count max_results num_results size results_per_page items_per_page max_items
limit count max_results num_results size top_k max_count n_results results number_of_results result_count max_items max_rows
unfurl_links expand_links show_previews link_previews
summary subject headline title name event_name event_title
description details body text content agenda notes note
attendees emails invited invite guest_list attendee_list invite_list
location where room meeting_room meeting_location
to addresses receiver receivers send_to
cc carbon_copy copy_to copy
send_updates notify notifications send_notifications notify_attendees
check_in checkin checkin_date arrival_date check_in_date
check_out checkout checkout_date departure_day check_out_date
query text input question search_text
offset skip start start_index from_index start_at start_from
freshness date_range period time_range recency time_period age
url page page_url target_url web_page webpage
max_length max_chars max_characters length max_size char_limit limit max_len
params args arguments values bindings query_params sql_params
collection table coll collection_name
filter query selector where criteria find match
projection fields select columns include_fields
units system unit measurement temperature_units
origin start start_point starting_location begin departure_point
destination end end_point ending_location finish arrival_point
mode transport travel_by transport_type
avoid to_avoid exclude avoid_types
departure_time start_time depart leave_time
payment_intent payment_id intent_id
metadata extra additional_data extra_data additional_info
assignee responsible user owner responsible_person
tags categories labels topics
notebook folder notebook_folder
pinned sticky pin pin_to_top
args params parameters arguments argv options
cwd directory dir path work_dir current_directory current_dir folder run_in
timeout_seconds max_seconds time_limit time_limit_seconds max_runtime_seconds max_runtime max_duration_seconds timeout
background async detached detach run_async in_background
title task task_name todo item
due date due_date date_due
departure_date date outbound_date travel_date start_date departing departing_on date_of_departure
return_date inbound_date end_date returning returning_on date_of_return
text source_text original_text
target_language output_language into
symbol stock code stock_code
interval timeframe granularity period resolution
min_price price_from lowest_price from_price price_min lower_price
max_price price_to highest_price to_price price_max upper_price budget price_limit
in_stock available only_available in_stock_only available_only only_in_stock
category department product_type
company org organization employer
message_id id msg_id
"""
_WHOLE: Final = tuple(frozenset(line.split()) for line in _WHOLE_LINES.strip().splitlines())
"""Names of parameters that callers use for each other as a whole: a word of them says nothing of another name that has it, too."""


def are_names_for_each_other(written: str, name: str) -> bool:
    """Return whether two whole names are in one group: `heart_rate` and `pulse`, `pageSize` and `per_page`."""
    one, other = "_".join(words(written)), "_".join(words(name))
    if any(one in group and other in group and ("_" in one or "_" in other) for group in NAMES):
        return True
    return any(one in group and other in group for group in _WHOLE)
