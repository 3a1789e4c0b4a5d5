"""The `credential_process` of AWS's profiles: a program of its own, since it runs in the job's container, where the agent is not.  It asks the endpoint beside whose files it lies."""

from __future__ import annotations

NAME = "credential-process"
PROGRAM = '''\
#!/usr/bin/env python3
"""Prints the credentials of one grant for AWS SDKs: credential-process GRANT.  Written by skyplan's agent."""
import json
import os
import sys
import urllib.request

folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "endpoint")) as opened:
    url = opened.read().strip() + "/v1/creds/" + sys.argv[1]
with open(os.path.join(folder, "token")) as opened:
    request = urllib.request.Request(url, headers={"Authorization": opened.read()})
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
        found = json.load(answer)
except OSError as error:
    sys.exit("credential-process: %s" % error)
shown = {"Version": 1, "AccessKeyId": found["AccessKeyId"], "SecretAccessKey": found["SecretAccessKey"]}
if found["Token"]:
    shown["SessionToken"] = found["Token"]
shown["Expiration"] = found["Expiration"]
print(json.dumps(shown))
'''
