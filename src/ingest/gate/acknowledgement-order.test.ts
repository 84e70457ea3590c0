/** An endpoint with two copies acknowledges in the order in which records came [MQTT-4.6.0-2]. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { Appended } from '#log/log-writer.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { aGate, aSender } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import type { Delivered } from './commit-waits.ts'
import type { GateOptions } from './context.ts'
import { EndpointTable } from './endpoint-table.ts'
import { gateLimits } from './limits.ts'

const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const record = { envelope: Buffer.from('{}'), payload: Buffer.from('1'), key: undefined }
/** Lets everything happen that does not wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

function opened(commitWaits?: GateOptions['commitWaits']) {
  const endpoint = anEndpoint({ account_id: 'account', copies: 2 })
  const configuration = { endpoints: new EndpointTable({ region: 'loc', endpoints: [endpoint] }) }
  const authenticator = { revision: 0, keyStatus: () => 'active' as const }
  const appends: PromiseWithResolvers<Appended>[] = []
  const gate = aGate({
    ...{ endpoints: [endpoint], configuration, authenticator },
    append: () => {
      const durable = Promise.withResolvers<Appended>()
      appends.push(durable)
      return durable.promise
    },
    ...(commitWaits === undefined ? {} : { commitWaits }),
    once: async () => ({ seq: 0, records: 1, bytes: 1, isRepeated: true }),
    // Nothing waits in the copier: what comes before is not on the disk yet.
    copies: { refusal: undefined, whenCopied: async () => undefined },
  })
  const outcomes: unknown[] = []
  const admitted = gate.admit({ ...aSender(principal), protocol: 'mqtt' }).openSession({
    stored: ({ ids, level }) => outcomes.push(...ids.map((id) => (level === 'committed' ? `${id} committed` : id))),
    lost: (_, { outcome }) => outcomes.push(outcome),
  })
  const change = (changed: Partial<typeof endpoint>) => {
    configuration.endpoints = new EndpointTable({ region: 'loc', endpoints: [{ ...endpoint, ...changed }] })
    authenticator.revision += 1
  }
  return { admitted, appends, outcomes, change }
}

test('a repetition is not acknowledged before a record that came earlier and is not copied', async () => {
  const { admitted, appends, outcomes } = opened()
  const copied = Promise.withResolvers<void>()
  admitted.append(record, 1, 1)
  admitted.append({ ...record, key: 'k' }, 2, 1)
  await settle()
  expect(outcomes).toEqual([])
  appends[0]?.resolve({ seq: 0, copied: copied.promise })
  await settle()
  expect(outcomes).toEqual([])
  copied.resolve()
  await settle()
  expect(outcomes).toEqual([1, 2])
})

test('a record that came after the endpoint went back to one copy is not acknowledged before one that waits for its copy', async () => {
  const { admitted, appends, outcomes, change } = opened()
  const copied = Promise.withResolvers<void>()
  admitted.append(record, 1, 1)
  appends[0]?.resolve({ seq: 0, copied: copied.promise })
  await settle()
  change({ copies: 1 })
  admitted.append(record, 2, 1)
  appends[1]?.resolve({ seq: 1 })
  await settle()
  expect(outcomes).toEqual([])
  copied.resolve()
  await settle()
  expect(outcomes).toEqual([1, 2])
})

test('a record whose sender waits for its commit holds back those after it, and one that asks for disk does not pass them', async () => {
  const delivered = Promise.withResolvers<Delivered | undefined>()
  const { admitted, appends, outcomes } = opened({ wait: () => ({ delivered: delivered.promise, end: () => undefined }) })
  admitted.append({ ...record, ack: 'disk' }, 1, 1)
  admitted.append({ ...record, ack: 'committed' }, 2, 1)
  admitted.append({ ...record, ack: 'disk' }, 3, 1)
  for (const [seq, append] of appends.entries()) append.resolve({ seq, copied: Promise.resolve() })
  await settle()
  expect(outcomes).toEqual([1])
  expect([admitted.recordsInFlight, admitted.bytesInFlight > 0]).toEqual([2, true])
  delivered.resolve({ commitId: 'c', keys: [] })
  await settle()
  expect(outcomes).toEqual([1, '2 committed', 3])
  expect([admitted.recordsInFlight, admitted.bytesInFlight]).toEqual([0, 0])
})

test('a record that asks for a level that there is not is refused alone, in its turn', async () => {
  const { admitted, appends, outcomes } = opened()
  admitted.append(record, 1, 1)
  admitted.append({ ...record, ack: 'twice' }, 2, 1)
  admitted.append({ ...record, ack: 'disk' }, 3, 1)
  await settle()
  expect(outcomes).toEqual([])
  for (const [seq, append] of appends.entries()) append.resolve({ seq, copied: Promise.resolve() })
  await settle()
  expect(outcomes).toEqual([1, 'invalid_ack_level', 3])
  expect(appends).toHaveLength(2)
})

test('once its connection is gone, nothing waits for a commit', async () => {
  const delivered = Promise.withResolvers<Delivered | undefined>()
  const end = () => delivered.resolve(undefined)
  const { admitted, appends, outcomes } = opened({ wait: () => ({ delivered: delivered.promise, end }) })
  admitted.append({ ...record, ack: 'committed' }, 1, 1)
  appends[0]?.resolve({ seq: 0, copied: Promise.resolve() })
  await settle()
  expect([outcomes, admitted.bytesInFlight]).toEqual([[], gateLimits.commitWaitBytes])
  admitted.end()
  await settle()
  expect([outcomes, admitted.recordsInFlight, admitted.bytesInFlight]).toEqual([[1], 0, 0])
})
