"""Notes on running jobs: nodes, agents, checkpoints, credentials, the control plane."""

from __future__ import annotations

from planner.model.notes import Note

_PLAN = "plan, explain, apply: as a caveat or note"
_NODE = "a node's console and `skyplan logs`"
_RECORD = "status, events, logs, serve"
_WIRE = "serve, broker: the answer to an agent, and their logs"

NOTES: dict[str, Note] = {
    "SKY-RUN-501": Note(
        _PLAN + "; doctor",
        "Nodes run the job's command and nothing else: no progress, no checkpoint on request, no renewed credentials.",
        "Publish the agent (`skyplan agent pack`) and name it under `agent` and `control_plane` in skyplan.yaml.",
        "no agent is configured: nodes run the job bare",
    ),
    "SKY-RUN-502": Note(
        _PLAN,
        "Nodes there have an identity that this store does not know.",
        "Name a broker or `federation`, use a store of the same cloud, or let the job bring its own.",
        "s3://acme-corpus/: no broker mints credentials for it",
    ),
    "SKY-RUN-503": Note(
        _NODE,
        "The fabric that was paid for is not there: over TCP the job would run several times slower at the same price, so the node stops.",
        "Look at the console's list of interfaces; place the job anew, elsewhere if it happens again.",
        "planned tcpx with 5 network interfaces, found 1; not starting the job without it",
    ),
    "SKY-RUN-504": Note(
        _PLAN,
        "If the job hangs, nothing ends its nodes: neither a time nor a sum is set.",
        "Add `constraints.stop_after`, in the job or for all in skyplan.yaml.",
        "nothing but its own end stops this job",
    ),
    "SKY-RUN-505": Note(
        _PLAN + "; rendezvous",
        "Nodes of a tunnel have to learn each other's keys and addresses, and not all have come, or there is nowhere to meet.",
        "Configure `rendezvous`, and open its port to the nodes; the message says who is missing.",
        "r02, r03 have not come after 1800 s",
    ),
    "SKY-RUN-506": Note(
        "nowhere now: set aside",
        "Somebody who is not the expected node tried to join, or a proof was used twice.",
        "See the message; make new join secrets if one may have leaked.",
        "r02: the proof was used already",
    ),
    "SKY-RUN-507": Note(
        "nowhere now: set aside",
        "Packets of the tunnel's size are dropped on the way, without a word.",
        "Lower the tunnel's MTU.",
        "1,380 bytes do not pass to r02",
    ),
    "SKY-RUN-508": Note(
        _PLAN,
        "On Azure a machine that powered itself off is still billed, until somebody deletes it.",
        "Run `skyplan reap` somewhere, or `skyplan destroy` when the job has ended.",
        "a node that has powered itself off is billed on until `skyplan destroy`",
    ),
    "SKY-RUN-509": Note(
        _WIRE + "; events",
        "A newer generation of the job has begun its cut; what older nodes send is not taken, so that two never write as one.",
        "Nothing: their nodes end.",
        "train-g1 is fenced by train-g2",
    ),
    "SKY-RUN-510": Note(
        "agents, status, doctor",
        "The control plane is down or not reached. Jobs compute on; nodes keep their reports on disk and send them later.",
        "Look at `/healthz` and the server's log.",
        "https://skyplan.example.com/healthz does not answer",
    ),
    "SKY-RUN-511": Note(
        "events, logs",
        "A checkpoint has no manifest, a wrong length or digest, or another key's signature; the one before it is used.",
        "Nothing for one that was torn by the end of a node; look at who writes there for a foreign one.",
        "step 5,200: shard 3 is shorter than its manifest says",
    ),
    "SKY-RUN-512": Note(
        "events",
        "The store had a newer whole checkpoint than the record, or lacks one that the record had. What lies in the store counts.",
        "Nothing: the record was corrected.",
        "the record said 5,000, the store has 5,200",
    ),
    "SKY-RUN-513": Note(
        "nowhere now: set aside",
        "The broker did not renew a lease and the old one still holds.",
        "See the broker's log.",
        "s3://acme-corpus/: not renewed for 12 min",
    ),
    "SKY-RUN-514": Note(
        "nowhere now: set aside",
        "A lease ends soon and could not be renewed; the job was asked to save what it has.",
        "Bring the broker back.",
        "s3://acme-ckpt/ ends in 4 min",
    ),
    "SKY-RUN-515": Note(
        _WIRE,
        "The broker mints what an approved plan that was applied grants to that very node. Something of it is not so.",
        "See the reason: the plan must be among the broker's files, the run current, the store in its grants.",
        "no approved plan grants s3://acme-other/ to train-g1",
    ),
    "SKY-RUN-516": Note(
        _WIRE,
        "A node's proof was not the platform's, not fresh, or of a machine that is not in this run.",
        "See the reason; after a change of the clouds' keys restart the server.",
        "the identity document is of i-0abc, the run has i-0def",
    ),
    "SKY-RUN-517": Note(
        "events, " + _NODE,
        "While the control plane was away the node's disk space for reports ran out; the oldest progress was dropped, never a checkpoint.",
        "Bring the control plane back.",
        "3,210 steps of progress were dropped",
    ),
    "SKY-RUN-518": Note(
        "events, status, watch",
        "The cloud announced that it takes the node: two minutes on AWS, half a minute elsewhere.",
        "Nothing at once: the job was asked for a checkpoint; `skyplan replan` or `watch` places it anew.",
        "r01: interruption at 2026-11-30T10:02:00Z",
    ),
    "SKY-RUN-519": Note(
        "reap",
        "A machine of a run that has ended was still there.",
        "Nothing: it was ended.",
        "i-0abc of train-g1, which ended",
    ),
    "SKY-RUN-520": Note(
        "serve, broker",
        "A setting of server.yaml or broker.yaml is wrong; nothing was started. Every problem is told at once.",
        "`skyplan schema server` and `schema broker` list the fields; docs/runtime.md has whole files.",
        "server.yaml:3: `listen` is off loopback, and there is no `tls`",
    ),
    "SKY-RUN-521": Note(
        "serve: the answer to a person",
        "Whoever asks is known, and has no role for that job.",
        "The owner of server.yaml gives roles under `people.bindings`.",
        "viewer may not ask for a checkpoint",
    ),
    "SKY-RUN-522": Note(
        _RECORD,
        "The job's own command ended with another code than 0; nodes end as after any job.",
        "`skyplan logs NAME` shows what it printed last.",
        "r00 of train-g1 ended with code 1",
    ),
    "SKY-RUN-523": Note(
        "events, " + _NODE,
        "A store could not be listed or written. Nothing is concluded from it: a failed listing is no empty one.",
        "See its message: a right, a region, a key.",
        "s3://acme-ckpt/runs/: AccessDenied on ListBucket",
    ),
    "SKY-RUN-524": Note(
        "state import, state export",
        "The file is damaged, cut short, of another major form, or the record it would go into is not empty.",
        "Export it anew; import into an empty record.",
        "record.json: its digest does not match",
    ),
    "SKY-RUN-525": Note(
        "reap, status",
        "The run reached `stop_after` or its sum, and its nodes are ended, whatever the job does.",
        "Raise the limit, plan and apply again: it goes on from its checkpoint.",
        "train-g1 ran for 60.1 h of 60 h",
    ),
    "SKY-RUN-526": Note(
        _WIRE,
        "Agent and server do not speak the same protocol, or something else called that address.",
        "Pack the agent and run the server from one version; docs/node-protocol.md has the form.",
        "`reports` must be a list",
    ),
}
