/** An endpoint with two copies acknowledges in the order in which records came [MQTT-4.6.0-2]. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { Appended } from '#log/log-writer.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { aGate, aSender } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import { EndpointTable } from './endpoint-table.ts'

const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const record = { envelope: Buffer.from('{}'), payload: Buffer.from('1'), key: undefined }
/** Lets everything happen that does not wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

function opened() {
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
    once: async () => ({ seq: 0, records: 1, bytes: 1, isRepeated: true }),
    // Nothing waits in the copier: what comes before is not on the disk yet.
    copies: { refusal: undefined, whenCopied: async () => undefined },
  })
  const outcomes: unknown[] = []
  const admitted = gate.admit({ ...aSender(principal), protocol: 'mqtt' }).openSession({
    stored: ({ ids }) => outcomes.push(...ids),
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
