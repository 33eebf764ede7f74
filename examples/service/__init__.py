"""A service whose agent has five killswitches: `tenant` is the agent and its limits, `app` the HTTP, `shop` its tools.

The budget is one for all runs of a tenant; time and calls are limited in each run; a refund waits for somebody's yes; and
one file ends everything. Whatever ends a run, its caller gets the best answer there was, and why there is no better one.

    pip install fastapi uvicorn
    uvicorn --factory examples.service.app:make_app

The model is a script, unless MODEL=openai/gpt-4o-mini, say, names a real one. From elsewhere:

    $ curl -s localhost:8000/ask -H X-Tenant:acme --json '{"task": "Please refund order 7.", "wait_s": 0.5}'
    {"run_id":"01M80SNANVXQ8DM886FH8VDXTT","status":"running","success":false,"output":null,"terminated_by":null,"terminated_because":null,"tokens":null}

    $ curl -s localhost:8000/approvals -H X-Tenant:acme
    [{"id":"1","run_id":"01M80SNANVXQ8DM886FH8VDXTT","tool":"refund","arguments":{"order":"7","euros":20},"risk":"high"}]

    $ curl -s localhost:8000/approvals/1 -H X-Tenant:acme --json '{"approved": false, "why": "ask the shop first"}'
    {"run_id":"01M80SNANVXQ8DM886FH8VDXTT","status":"running","success":false,"output":null,"terminated_by":null,"terminated_because":null,"tokens":null}

    $ curl -s localhost:8000/runs/01M80SNANVXQ8DM886FH8VDXTT -H X-Tenant:acme
    {"run_id":"01M80SNANVXQ8DM886FH8VDXTT","status":"done","success":true,"output":"I may not pay order 7 back.","terminated_by":"end_turn","terminated_because":null,"tokens":22}

    $ curl -s localhost:8000/ask -H X-Tenant:acme --json '{"task": "Please refund order 7.", "wait_s": 0}'
    {"run_id":"01M80SNC097ZETVX4H7CYAFGC8","status":"running","success":false,"output":null,"terminated_by":null,"terminated_because":null,"tokens":null}

    $ curl -s localhost:8000/runs/01M80SNC097ZETVX4H7CYAFGC8/stop -H X-Tenant:acme --json '{"why": "no longer needed"}'
    {"run_id":"01M80SNC097ZETVX4H7CYAFGC8","status":"done","success":false,"output":"Order 7 is a lamp for 20 euros, came broken.","terminated_by":"kill","terminated_because":"no longer needed","tokens":8}

    curl -sN localhost:8000/stream -H X-Tenant:acme --json '{"task": "What is order 7?"}'
    event: IterationProgress
    data: {"type":"IterationProgress","owner":"root","iteration":0,"max_iterations":10,"tokens_used":0,"tools_called_this_step":[]}

    event: TextDelta
    data: {"type":"TextDelta","owner":"root","text":"I","request":0,"attempt":0,"purpose":"think"}

`touch STOP` where the server runs ends every run of every tenant, and none begins until the file is gone. SIGTERM and Ctrl-C
end the runs before the server.

Limits: budgets and questions are in the memory of one process, so `--workers` needs a place that they share. Tenants are
told apart by a header; take yours from a login. A tool that never lets go of the interpreter holds up the whole server:
`@tool(isolate=True)`.
"""
