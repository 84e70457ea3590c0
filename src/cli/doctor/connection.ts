/** Checks of the Inlet that this user is signed in to. */
import { noResponse } from '#client/errors.ts'
import { findEmptyRegion } from '#model/empty-region.ts'
import { findAccess, openRemote } from '../remote/remote.ts'
import type { CliContext } from '../terminal/context.ts'
import { attempt, type Finding, fail, ok, warn } from './finding.ts'

const answerMs = 5000
const skewMsMax = 5000

export async function checkConnection(context: CliContext): Promise<readonly Finding[]> {
  const { url } = await findAccess(context)
  const reached = await attempt('connection', `start it, or correct the address ${url} (inlet login)`, async () => {
    const start = performance.now()
    const ready = new URL(`${url.replace(/\/+$/, '')}/readyz`)
    const response = await fetch(ready, { signal: AbortSignal.timeout(answerMs), redirect: 'error' }).catch((error) => {
      throw noResponse(ready, error)
    })
    const ms = performance.now() - start
    await response.body?.cancel()
    const theirs = Date.parse(response.headers.get('date') ?? '')
    return [
      response.status === 200
        ? ok('connection', `${url} is ready, and answers in ${Math.ceil(ms)} ms`)
        : fail('connection', `${url} is not ready (HTTP ${response.status})`, 'wait, or see the log of control'),
      ...(Number.isNaN(theirs) ? [] : [describeSkew(context.clock.now() - theirs)]),
    ]
  })
  if (reached.some(({ status }) => status === 'fail')) return reached
  return [
    ...reached,
    ...(await attempt('API key', 'sign in with a key of the scope metrics or admin (inlet login)', async () => {
      const { client } = await openRemote(context)
      const findings: Finding[] = []
      for await (const { name, status, status_reasons } of client.listEndpoints())
        findings.push(
          status === 'degraded' || status === 'failed' || findEmptyRegion(status_reasons) !== undefined
            ? fail(
                'endpoint',
                `${name} is ${status}: ${status_reasons.join('; ')}`,
                `inlet endpoints show ${name}; docs/status.md`,
              )
            : ok('endpoint', `${name} is ${status}`),
        )
      return [ok('API key', 'the key is valid'), ...findings]
    })),
  ]
}

/** `Date` of a response has whole seconds. */
function describeSkew(ms: number): Finding {
  const seconds = Math.round(Math.abs(ms) / 1000)
  return Math.abs(ms) > skewMsMax
    ? warn('clock', `this machine is ${seconds} s ${ms > 0 ? 'ahead of' : 'behind'} the server`, 'keep both on NTP')
    : ok('clock', 'this machine and the server agree on the time')
}
