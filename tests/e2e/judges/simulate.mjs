// Judges authorization requests with @cloud-copilot/iam-simulate: JSON lines in, JSON lines out.
// argv: the library's folder.  A line: {principal, account, action, resource, context, policies: [{kind, name, document}]}, where a number in place of
// `policies` means those of that earlier line.
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const { runSimulation } = await import(pathToFileURL(process.argv[2]).href)
const held = []

const named = (policies, kind) => policies.filter((p) => p.kind === kind).map((p) => ({ name: p.name, policy: p.document }))

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  const policies = typeof asked.policies === 'number' ? held[asked.policies] : asked.policies
  held.push(policies)
  const boundaries = named(policies, 'boundary')
  const done = await runSimulation(
    {
      request: {
        principal: asked.principal,
        action: asked.action,
        resource: { resource: asked.resource, accountId: asked.account },
        contextVariables: asked.context,
      },
      identityPolicies: named(policies, 'identity'),
      permissionBoundaryPolicies: boundaries.length ? boundaries : undefined,
      sessionPolicy: named(policies, 'session')[0]?.policy,
      serviceControlPolicies: [],
      resourceControlPolicies: [],
    },
    {},
  )
  const answer =
    done.resultType === 'error'
      ? { error: done.errors }
      : { decision: done.overallResult, ignored: done.resultType === 'single' ? (done.result.ignoredContextKeys ?? []) : [] }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
