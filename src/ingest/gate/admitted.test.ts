import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { CopyError } from '#copies/copy-error.ts'
import { AppError } from '#errors.ts'
import { InvariantError } from '#lib/assert.ts'
import type { Appended } from '#log/log-writer.ts'
import type { AckLevel } from '#model/ack-level.ts'
import { newId } from '#model/id.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { aGate, aSender } from '../../../test/support/gate.ts'
import { anEndpoint } from '../../../test/support/ingest-node.ts'
import type { Records, Responder } from './admitted.ts'
import type { Delivered } from './commit-waits.ts'
import type { GateOptions } from './context.ts'
import { EndpointCounts } from './endpoint-counters.ts'
import { EndpointTable } from './endpoint-table.ts'
import type { Gate } from './gate.ts'
import { gateLimits } from './limits.ts'
import { Rejection } from './rejection.ts'

const endpoint = anEndpoint({ account_id: 'account' })
const principal: KeyPrincipal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null }
const records: Records = {
  body: { layout: 'lines', records: 2, payload: [Buffer.from('1\n2\n')], payloadBytes: 4 },
  envelope: Buffer.from('{}'),
  key: undefined,
}

/** Resolves with the outcome that the responder learns. */
function aResponder(): Responder & { readonly outcome: Promise<unknown> } {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  return {
    outcome: promise,
    appending: () => undefined,
    appended: () => undefined,
    awaitingCommit: () => undefined,
    acknowledge: resolve,
    reject: (error) => resolve(error instanceof Rejection ? error.outcome : error),
  }
}

const append = () => Promise.resolve<Appended>({ seq: 7 })

test('records are acknowledged once they are durable, and counted', async () => {
  const durable = Promise.withResolvers<Appended>()
  const counts = new EndpointCounts()
  const gate = aGate({ endpoints: [endpoint], counts, append: () => durable.promise })
  const responder = aResponder()
  gate.admit(aSender(principal)).append(records, responder)
  await Promise.resolve()
  expect([counts.takeAll(), gate.acknowledgements.http.count]).toEqual([[], 0])
  durable.resolve({ seq: 7 })
  expect(await responder.outcome).toEqual({ seq: 7, records: 2, bytes: 4, isRepeated: false, level: 'disk' })
  expect(counts.takeAll()).toMatchObject([[endpoint.id, { requests: 1, records: 2, bytes: 4 }]])
  expect([gate.acknowledgements.http.count, gate.acknowledgements.mqtt.count]).toEqual([1, 0])
})

test('a request is appended once', () => {
  const admitted = aGate({ endpoints: [endpoint], append }).admit(aSender(principal))
  admitted.append(records, aResponder())
  expect(() => admitted.append(records, aResponder())).toThrow(InvariantError)
})

test.each([undefined, 'key'])('the responder learns once that records are durable: key %s', async (key) => {
  const seqs: number[] = []
  const responder = { ...aResponder(), appended: ({ seq }: Appended) => void seqs.push(seq) }
  const once: GateOptions['storedRequests']['once'] = async (_endpointId, _key, _frame, store) => ({
    ...{ records: 2, bytes: 4, isRepeated: false },
    seq: (await store()).seq,
  })
  const gate = aGate({ endpoints: [endpoint], append, once })
  gate.admit(aSender(principal)).append({ ...records, key }, responder)
  await responder.outcome
  expect(seqs).toEqual([7])
})

test('the end releases all that was reserved', () => {
  const changes: number[] = []
  const room = {
    reserve: (bytes: number) => void changes.push(bytes),
    release: (bytes: number) => void changes.push(-bytes),
  }
  const admitted = aGate({ endpoints: [endpoint], room }).admit(aSender(principal))
  admitted.reserve(3)
  admitted.reserve(4)
  admitted.end()
  admitted.end()
  expect(changes).toEqual([3, 4, -7, -0])
})

describe('records that took time to arrive', () => {
  /** Admits a request, and changes the configuration before its records have arrived. */
  function started(changed: Partial<typeof endpoint>, isKeyValid: boolean) {
    const configuration = { endpoints: new EndpointTable({ region: 'loc', endpoints: [endpoint] }) }
    const authenticator = { revision: 0 }
    const gate = aGate({ endpoints: [endpoint], configuration, authenticator, append })
    const state = { isKeyValid: true }
    const authenticate = () => {
      if (!state.isKeyValid) throw new AppError('unauthorized', 'the key was revoked')
      return principal
    }
    const admitted = gate.admit({ ...aSender(principal), authenticate })
    configuration.endpoints = new EndpointTable({ region: 'loc', endpoints: [{ ...endpoint, ...changed }] })
    authenticator.revision += 1
    state.isKeyValid = isKeyValid
    return admitted
  }

  test.each([
    ['of a key that was revoked meanwhile', {}, false, 'unauthorized'],
    ['for an endpoint that was paused meanwhile', { desired_state: 'paused' as const }, true, 'endpoint_paused'],
    ['of an account that was suspended meanwhile', { account_suspended: true }, true, 'account_suspended'],
  ])('%s are rejected', async (_, changed, isKeyValid, outcome) => {
    const responder = aResponder()
    started(changed, isKeyValid).append(records, responder)
    expect(await responder.outcome).toBe(outcome)
  })

  test('are stored if the key and the endpoint still are valid', async () => {
    const responder = aResponder()
    started({ segment_bytes: 1 }, true).append(records, responder)
    expect(await responder.outcome).toMatchObject({ seq: 7 })
  })
})

test('a request with a key waits until the keys that a crash left in the log are known', async () => {
  const recovered = Promise.withResolvers<boolean>()
  const asked: string[] = []
  const stored = { seq: 0, records: 1, bytes: 2, isRepeated: true }
  const gate = aGate({
    endpoints: [endpoint],
    whenRecovered: (logName) => (logName === endpoint.id ? recovered.promise : Promise.resolve(true)),
    once: async (_endpointId, key) => {
      asked.push(key)
      return stored
    },
  })
  const responder = aResponder()
  gate.admit(aSender(principal)).append({ ...records, key: 'key' }, responder)
  await new Promise((resolve) => setImmediate(resolve))
  expect(asked).toEqual([])
  recovered.resolve(true)
  expect(await responder.outcome).toEqual({ ...stored, level: 'disk' })
})

describe('an endpoint with two copies', () => {
  const twice = anEndpoint({ account_id: 'account', copies: 2 })
  const store = { refusal: undefined as string | undefined, whenCopied: async () => undefined }

  test.each([undefined, 'key'])(
    'acknowledges once the records are copied, and not because they are on the disk: key %s',
    async (key) => {
      const copied = Promise.withResolvers<void>()
      const counts = new EndpointCounts()
      const gate = aGate({
        ...{ endpoints: [twice], counts, copies: store },
        append: () => Promise.resolve({ seq: 7, copied: copied.promise }),
        once: async (_endpointId, _key, _frame, append) => ({ ...(await append()), records: 2, bytes: 4, isRepeated: false }),
      })
      const responder = aResponder()
      gate.admit(aSender(principal)).append({ ...records, key }, responder)
      await new Promise((resolve) => setImmediate(resolve))
      expect(counts.takeAll()).toEqual([])
      copied.resolve()
      expect(await responder.outcome).toMatchObject({ seq: 7, isRepeated: false })
    },
  )

  test.each([
    ['that was restored from copies is acknowledged at once', false, undefined, 'copied'],
    ['on an adopted disk is acknowledged once it is delivered', true, { commitId: 'c', keys: [] }, 'copied'],
    ['on an adopted disk alone is refused', true, undefined, 'not_copied'],
  ] as const)('a repetition of what a lost node stored, and %s', async (_, isOnDisk, delivered, said) => {
    const lost = newId()
    const gate = aGate({
      ...{ endpoints: [twice], copies: { ...store, whenCopied: () => Promise.reject(new Error('it is not of this node')) } },
      once: async () => ({ seq: 7, records: 2, bytes: 4, isRepeated: true, nodeId: lost, isOnDisk }),
      commitWaits: {
        wait({ nodeId, seq }) {
          expect([nodeId, seq]).toEqual([lost, 7])
          return { delivered: Promise.resolve(delivered), end: () => undefined }
        },
      },
    })
    const responder = aResponder()
    gate.admit(aSender(principal)).append({ ...records, key: 'key' }, responder)
    const outcome = await responder.outcome
    expect(typeof outcome === 'object' && outcome !== null && 'level' in outcome ? outcome.level : outcome).toBe(said)
  })

  const slow = () => Promise.reject(new CopyError('unavailable', 'the store is slow'))
  const outcomeOf = (gate: Gate, error: unknown) => gate.rejectionOf(error).outcome

  test.each<[string, () => Appended]>([
    ['the copy fails', () => ({ seq: 7, copied: slow() })],
    ['its setting changed on the way to the disk', () => ({ seq: 7 })],
  ])('acknowledges nothing if %s', async (_, appended) => {
    const gate = aGate({ endpoints: [twice], copies: store, append: async () => appended() })
    const responder = aResponder()
    gate.admit(aSender(principal)).append(records, responder)
    const outcome = await responder.outcome
    expect(outcome === 'not_copied' ? outcome : outcomeOf(gate, outcome)).toBe('not_copied')
  })

  test('acknowledges a repetition once the first request is copied', async () => {
    const once = async () => ({ seq: 7, records: 2, bytes: 4, isRepeated: true })
    const gate = aGate({ endpoints: [twice], copies: { ...store, whenCopied: slow }, once })
    const responder = aResponder()
    gate.admit(aSender(principal)).append({ ...records, key: 'key' }, responder)
    expect(outcomeOf(gate, await responder.outcome)).toBe('not_copied')
  })

  test('is refused before its records are read, without a copy store or while that fails', () => {
    for (const copies of [undefined, { ...store, refusal: 'the copy store takes no records' }]) {
      const gate = aGate({ endpoints: [twice], append, ...(copies === undefined ? {} : { copies }) })
      expect(() => gate.admit(aSender(principal))).toThrow(expect.objectContaining({ outcome: 'not_copied' }))
    }
  })
})

describe('the level that a request asks for', () => {
  const twice = anEndpoint({ account_id: 'account', copies: 2 })
  const copies = { refusal: undefined, whenCopied: async () => undefined }
  const asked = (level: AckLevel) => ({ ...records, ack: { level, waitMs: 1 } })
  /** A commit that the test ends, or lets happen. */
  const aCommitWait = () => {
    const { promise: delivered, resolve } = Promise.withResolvers<Delivered | undefined>()
    return { delivered, resolve, end: () => resolve(undefined) }
  }

  test('disk: the copy is not waited for, and its failure is nobody’s', async () => {
    const appended = { seq: 7, copied: Promise.withResolvers<void>().promise }
    const gate = aGate({ endpoints: [twice], copies, append: async () => appended })
    const responder = aResponder()
    gate.admit(aSender(principal)).append(asked('disk'), responder)
    expect(await responder.outcome).toMatchObject({ seq: 7, level: 'disk' })
  })

  test('copied: of an endpoint with one copy it is refused, and nothing is stored', async () => {
    const gate = aGate({ endpoints: [endpoint] })
    const responder = aResponder()
    gate.admit(aSender(principal)).append(asked('copied'), responder)
    expect(await responder.outcome).toBe('invalid_ack_level')
  })

  test('committed: it is counted at once, needs no memory for its records while it waits, and has the keys of its objects', async () => {
    const counts = new EndpointCounts()
    const wait = aCommitWait()
    let reserved = 0
    const add = (bytes: number) => {
      reserved += bytes
    }
    const room = { reserve: add, forceReserve: add, release: (bytes: number) => add(-bytes) }
    const segments: unknown[] = []
    const commitWaits = {
      wait(segment: unknown) {
        segments.push(segment)
        return wait
      },
    }
    const gate = aGate({ endpoints: [endpoint], counts, append, room, commitWaits })
    const admitted = gate.admit(aSender(principal))
    admitted.reserve(4)
    const waiting = Promise.withResolvers<void>()
    const responder = { ...aResponder(), awaitingCommit: () => waiting.resolve() }
    admitted.append(asked('committed'), responder)
    await waiting.promise
    expect([reserved, counts.takeAll().length]).toEqual([gateLimits.commitWaitBytes, 1])
    const delivered = { commitId: 'c', keys: ['a.parquet'] }
    wait.resolve(delivered)
    expect(await responder.outcome).toMatchObject({ seq: 7, level: 'committed', delivered })
    admitted.end()
    expect(reserved).toBe(0)
    expect(segments).toEqual([{ accountId: 'account', endpointId: endpoint.id, seq: 7 }])
  })

  test.each([
    ['disk', endpoint, append],
    ['copied', twice, async () => ({ seq: 7, copied: Promise.resolve() })],
  ] as const)('committed, and not delivered in time: it says %s', async (level, of, stored) => {
    const wait = aCommitWait()
    wait.end()
    const gate = aGate({ endpoints: [of], copies, append: stored, commitWaits: { wait: () => wait } })
    const responder = aResponder()
    gate.admit(aSender(principal)).append(asked('committed'), responder)
    expect(await responder.outcome).toMatchObject({ level })
  })

  test('a wait for the commit of a receipt needs memory, and is refused without', async () => {
    let reserved = 0
    const reserve = (bytes: number) => {
      if (reserved > 0) throw new Rejection('no_room', 'there is no memory')
      reserved += bytes
    }
    const release = (bytes: number) => {
      reserved -= bytes
    }
    const gate = aGate({ endpoints: [endpoint], room: { reserve, release } })
    const [first, second] = [gate.admit(aSender(principal)), gate.admit(aSender(principal))]
    await first.awaitDelivery({ nodeId: 'node', seq: 1 }, 1)
    expect(reserved).toBe(gateLimits.commitWaitBytes)
    await expect(second.awaitDelivery({ nodeId: 'node', seq: 1 }, 1)).rejects.toThrow('there is no memory')
    first.end()
    expect(reserved).toBe(0)
  })

  test('committed: nothing is waited for once the client has left', async () => {
    const wait = aCommitWait()
    const gate = aGate({ endpoints: [endpoint], append, commitWaits: { wait: () => wait } })
    const admitted = gate.admit(aSender(principal))
    const waiting = Promise.withResolvers<void>()
    admitted.append(asked('committed'), { ...aResponder(), awaitingCommit: () => waiting.resolve() })
    await waiting.promise
    admitted.end()
    expect(await wait.delivered).toBe(undefined)
  })
})
