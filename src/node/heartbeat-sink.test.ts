import { expect, test } from 'vitest'
import { aSnapshot } from '../../test/support/ingest-node.ts'
import { ControlError } from './control-client.ts'
import { heartbeatSink } from './heartbeat-sink.ts'

const message = {
  ...{ process: 'delivery' as const, node_id: 'n', applied_epoch: 1, healthy: true },
  ...{ reasons: [], lag: [] },
}

test.each([
  ['a node that has not joined yet', undefined, 401, true],
  ['a node that lost its credential', aSnapshot(), 401, false],
  ['a node without control', undefined, 0, false],
])('a failed heartbeat of %s', async (_, snapshot, status, isSilent) => {
  let registrations = 0
  let answers = 0
  const feed = {
    controlAnswered: () => void answers++,
    current: () => snapshot,
    registerAgain: () => void registrations++,
  }
  const clock = { monotonic: () => 0, observe: () => undefined }
  const sendHeartbeat = () => Promise.reject(new ControlError(status, 'refused'))
  const sent = heartbeatSink({ sendHeartbeat }, feed, clock).sendHeartbeat(message, new AbortController().signal)
  if (isSilent) await sent
  else await expect(sent).rejects.toThrow('refused')
  expect([registrations, answers]).toEqual([status === 401 ? 1 : 0, 0])
})
