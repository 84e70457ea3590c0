/**
 * Requests with an idempotency key while the log has frames of an earlier process that were not read yet.
 *
 * Law: such a request may have been stored, so it is refused unless its key is found elsewhere. Requests without a key are stored. Nobody is
 * refused any more once the frames were read, or are gone for good.
 */
import { Buffer } from 'node:buffer'
import { beforeEach, describe, expect, test } from 'vitest'
import { appendOnce } from '#ingest/gate/append-once.ts'
import { noCopyStore } from '#ingest/gate/copied.ts'
import { StoredRequests } from '#ingest/idempotency/stored-requests.ts'
import { createLogger } from '#lib/telemetry.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import type { DiskOperation } from '../support/faulty-files.ts'
import { oneRecord } from '../support/frames.ts'
import { WalRig, type WalRigOptions } from '../support/wal-rig.ts'

const logger = createLogger('test', 'silent')
const refused = {
  outcome: 'not_stored',
  retryAfterSeconds: 5,
  message: 'this node cannot read all of its idempotency keys now; try again in 5 s',
}

let rig: WalRig
let requests: StoredRequests

beforeEach(async () => {
  rig = await WalRig.start()
  await restart()
})

/** Starts a new process after a kill. */
async function restart(options: WalRigOptions = {}): Promise<void> {
  rig.disk.kill()
  const files = rig.disk.mount()
  const clock = new CheckedClock({ machine: rig.clock, logger })
  requests = new StoredRequests({ directory: '/data/stored-requests', max: 1_000, files, clock, logger })
  await requests.start()
  await rig.restart({ ...options, files, observer: requests })
}

async function send(key: string): Promise<string> {
  const envelope = encodeEnvelope({ protocol: 'http', idempotency_key: key })
  const frame = { ...oneRecord({ at: rig.clock.now() * 1_000 }), envelope: Buffer.from(envelope) }
  const append = async () => await rig.wal.append('log', frame)
  const commitWaits = { wait: () => ({ delivered: Promise.resolve(undefined), end: () => undefined }) }
  const gate = { log: rig.wal, storedRequests: requests, copies: noCopyStore, commitWaits }
  const { seq, isRepeated } = await appendOnce(gate, {
    endpoint: { id: 'log', account_id: 'account', copies: 1 },
    key,
    frame,
    append,
  })
  return `${isRepeated ? 'repeated' : 'new'} ${seq}`
}

/** Makes operations of this kind fail for the segment. Returns the paths of those that fail. */
function failSegment(kind: DiskOperation['kind'], seq = 0): readonly string[] {
  const name = new RegExp(`000${seq}-.*(open|poisoned|salvage)$`)
  const failed: string[] = []
  rig.disk.fault = (operation) => {
    if (operation.kind !== kind || !name.test(operation.path)) return undefined
    failed.push(operation.path)
    return { error: 'EIO' }
  }
  return failed
}

test.each<DiskOperation['kind']>(['open', 'read'])(
  'a segment whose %s fails: keys are refused until it was read, and no request tries to read it',
  async (kind) => {
    await send('a')
    const failed = failSegment(kind)
    await restart()
    const attempts = failed.length
    for (const key of ['a', 'b', 'a']) await expect(send(key)).rejects.toMatchObject(refused)
    expect(await rig.append('without a key')).toBe(1)
    expect(failed.length).toBe(attempts)
    expect(rig.wal.blocked()).toMatchObject([{ reason: expect.stringMatching(/requests with an idempotency key are refused/) }])
    await rig.upkeep()
    expect(failed.length).toBeGreaterThan(attempts)
    await expect(send('a')).rejects.toMatchObject(refused)
    rig.heal()
    await rig.upkeep()
    expect([await send('a'), await send('b')]).toEqual(['repeated 0', 'new 1'])
  },
)

test('a segment whose first read fails once, after the start: the requests that wait for it are refused, later ones are not', async () => {
  await send('a')
  const failed = failSegment('open')
  await restart({ limits: { recoveryWaitMs: 0 } })
  await expect(Promise.all([send('a'), send('b')])).rejects.toMatchObject(refused)
  expect(failed.length).toBe(1)
  rig.heal()
  await rig.upkeep()
  expect(await send('a')).toBe('repeated 0')
})

test('a directory that cannot be read: keys are refused until it was read', async () => {
  await send('a')
  rig.disk.fault = ({ kind, path }) => (kind === 'list' && path === `${rig.directory}/log` ? { error: 'EACCES' } : undefined)
  await restart()
  await expect(send('a')).rejects.toMatchObject(refused)
  rig.heal()
  await expect(send('a')).rejects.toMatchObject(refused)
  await rig.upkeep()
  expect([await send('a'), await send('b')]).toEqual(['repeated 0', 'new 1'])
})

test('a key that is in a file: has its receipt although a segment cannot be read', async () => {
  await send('a')
  await rig.wal.stop(new AbortController().signal)
  await requests.stop()
  await restart()
  await send('b')
  failSegment('open', 1)
  await restart()
  expect(await send('a')).toBe('repeated 0')
  await expect(send('b')).rejects.toMatchObject(refused)
})

test('a segment that was read but cannot be sealed: its keys are known, and new ones are stored', async () => {
  await send('a')
  failSegment('sync')
  await restart()
  expect(rig.wal.blocked()).toHaveLength(1)
  expect([await send('a'), await send('b')]).toEqual(['repeated 0', 'new 1'])
})

describe('a segment that is never read: its keys are new', () => {
  test('once it was moved away', async () => {
    await send('a')
    failSegment('open')
    await restart()
    await rig.files.remove(rig.disk.paths().find((path) => path.endsWith('.poisoned')) ?? '')
    await rig.upkeep()
    expect(await send('a')).toBe('new 1')
  })

  test('once it turned out to be damaged', async () => {
    await send('a')
    rig.disk.damage(rig.openPath(), (bytes) => bytes.fill(0xff))
    await restart()
    expect(rig.wal.blocked()).toEqual([])
    expect(await send('a')).toBe('new 1')
  })
})
