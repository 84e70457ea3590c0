import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { FrameInput } from '#log/frame.ts'
import type { Appended } from '#log/log-writer.ts'
import { recordLimits } from '#model/limits.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { effectiveQuotas } from '#model/quota.ts'
import { aGate, aSender } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { until } from '../../../test/support/until.ts'
import type { KeyStatus } from './authenticator.ts'
import { EndpointCounts } from './endpoint-counters.ts'
import { EndpointTable } from './endpoint-table.ts'

const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const record = { envelope: Buffer.from('{}'), payload: Buffer.from('1'), key: undefined }

/** A session of one client, and what came of its records. */
function opened({ recordsPerSecond = 1_000 } = {}) {
  const account_quotas = { ...effectiveQuotas({}), records_per_second: recordsPerSecond }
  const endpoint = anEndpoint({ account_id: 'account', account_quotas })
  const configuration = { endpoints: new EndpointTable({ region: 'loc', endpoints: [endpoint] }) }
  const key: { status: KeyStatus } = { status: 'active' }
  const authenticator = { revision: 0, keyStatus: () => key.status }
  const frames: FrameInput[] = []
  const durable = Promise.withResolvers<Appended>()
  const counts = new EndpointCounts()
  const append = (_: string, frame: FrameInput) => {
    frames.push(frame)
    return durable.promise
  }
  const gate = aGate({ endpoints: [endpoint], configuration, authenticator, counts, append })
  const outcomes: unknown[] = []
  const admitted = gate.admit({ ...aSender(principal), protocol: 'mqtt' }).openSession({
    stored: ({ ids, records }) => outcomes.push({ ids, records }),
    lost: (_, { outcome }) => outcomes.push(outcome),
  })
  return {
    ...{ admitted, gate, frames, counts, durable, outcomes },
    /** Applies a new configuration, of which the protocol learns nothing. */
    change(changed: Partial<typeof endpoint>, status: KeyStatus = 'active') {
      configuration.endpoints = new EndpointTable({ region: 'loc', endpoints: [{ ...endpoint, ...changed }] })
      key.status = status
      authenticator.revision += 1
    },
  }
}

test('records that become durable together are acknowledged and counted together', async () => {
  const { admitted, gate, counts, durable, outcomes } = opened()
  for (const id of [3, 0, 5]) expect(admitted.append(record, id, 1)).toBe(true)
  expect(admitted.recordsInFlight).toBe(3)
  durable.resolve({ seq: 0 })
  await until('the acknowledgement', () => outcomes.length > 0)
  expect(outcomes).toEqual([{ ids: [3, 5], records: 3 }])
  expect([admitted.recordsInFlight, admitted.bytesInFlight, gate.acknowledgements.mqtt.count]).toEqual([0, 0, 3])
  expect(counts.takeAll()).toMatchObject([[expect.any(String), { records: 3, requests: 3, bytes: 3 }]])
})

test.each([
  ['its endpoint is paused', 'endpoint_paused', { desired_state: 'paused' }, 'active'],
  ['its account is suspended', 'account_suspended', { account_suspended: true }, 'active'],
  ['the access of its key has ended', 'unauthorized', {}, 'ended'],
  ['its key is known no more', 'unauthorized', {}, 'unknown'],
] as const)('once %s, nothing is stored, even if the protocol did not look', (_, outcome, changed, status) => {
  const { admitted, change, frames, counts } = opened()
  change(changed, status)
  expect(admitted.append(record, 1, 1)).toBe(false)
  expect([admitted.refusal(1).outcome, frames.length]).toEqual([outcome, 0])
  expect(counts.takeAll()).toMatchObject([[expect.any(String), { refused: { [outcome]: 1 } }]])
  change({})
  expect([admitted.recheck(), admitted.append(record, 1, 1)]).toEqual([undefined, true])
})

test('a key that was revoked so that open connections stay is used on, also when it is forgotten', () => {
  const { admitted, change } = opened()
  change({}, 'expiring')
  expect(admitted.append(record, 1, 1)).toBe(true)
  change({}, 'unknown')
  expect(admitted.append(record, 1, 1)).toBe(true)
})

test('a record above a quota, or above the limit for a record, is refused', () => {
  const { admitted, frames } = opened({ recordsPerSecond: 1 })
  const now = Date.now() * 1000
  expect([admitted.append(record, 1, now), admitted.append(record, 2, now)]).toEqual([true, false])
  expect(admitted.refusal(now / 1000).outcome).toBe('quota_exceeded')
  const large = { ...record, payload: Buffer.alloc(recordLimits.bytesMax + 1) }
  expect(() => admitted.append(large, 3, now)).toThrow(expect.objectContaining({ outcome: 'record_too_large' }))
  expect(frames).toHaveLength(1)
})

test('a repetition that asks for committed waits for the segment of the lost node that stored it', async () => {
  const endpoint = anEndpoint({ account_id: 'account' })
  const waited: unknown[] = []
  const gate = aGate({
    endpoints: [endpoint],
    once: async () => ({ seq: 7, records: 1, bytes: 1, isRepeated: true, nodeId: 'lost' }),
    commitWaits: {
      wait({ nodeId, seq }) {
        waited.push([nodeId, seq])
        return { delivered: Promise.resolve(undefined), end: () => undefined }
      },
    },
  })
  const levels: unknown[] = []
  const admitted = gate.admit({ ...aSender(principal), protocol: 'mqtt' }).openSession({
    stored: ({ level }) => levels.push(level),
    lost: (_, { outcome }) => levels.push(outcome),
  })
  admitted.append({ ...record, key: 'k', ack: 'committed' }, 1, 1)
  await until('the acknowledgement', () => levels.length > 0)
  expect([waited, levels]).toEqual([[['lost', 7]], ['disk']])
})
