import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newNodeSecret, printNodeCredential } from '#auth/node-credential.ts'
import { type Clock, systemClock } from '#lib/clock.ts'
import { type Files, systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { aBoundView } from '../../test/support/delivery-node.ts'
import { anEndpoint, aSnapshot, ControlStandIn } from '../../test/support/ingest-node.ts'
import { until } from '../../test/support/until.ts'
import { ControlClient } from './control-client.ts'
import { NodeFence } from './node-fence.ts'
import { SnapshotFeed } from './snapshot-feed.ts'

let directory = ''
let control: ControlStandIn

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-feed-'))
  control = await ControlStandIn.start()
})
afterEach(async () => {
  await control[Symbol.asyncDispose]()
  await rm(directory, { recursive: true })
})

type Opened = {
  readonly url?: string
  readonly isRegistering?: boolean
  readonly files?: Files
  readonly clock?: Clock
  readonly credential?: string
  /** Called when control has refused a call. */
  readonly onRefused?: (feed: SnapshotFeed) => void
}

const token = printNodeCredential(newId(), newNodeSecret())

/** Starts a feed and collects the epochs that it publishes. */
async function open({
  url = control.url,
  isRegistering = false,
  files = systemFiles,
  clock = systemClock,
  credential = token,
  onRefused = () => undefined,
}: Opened = {}) {
  const epochs: number[] = []
  const warnings: string[] = []
  const logger = createLogger('test', 'silent')
  logger.warn = (_: object, text?: string) => void warnings.push(String(text))
  let registrations = 0
  const register = async () => {
    registrations += 1
  }
  const fence = await NodeFence.open({ path: join(directory, 'fence'), files, logger })
  const feed: SnapshotFeed = new SnapshotFeed({
    ...system,
    client: new ControlClient({
      ...system,
      url,
      credential: { token: credential, reload: async () => onRefused(feed) },
      timeoutMs: 1_000,
    }),
    nodeId: newId(),
    kinds: ['endpoints', 'views'],
    path: join(directory, 'snapshot.ndjson'),
    ...(isRegistering ? { registration: { register } } : {}),
    ...{ files, clock, logger, fence },
  })
  feed.subscribe(({ epoch }) => epochs.push(epoch))
  await feed.start()
  return { feed, epochs, warnings, fence, registrations: () => registrations }
}

describe('SnapshotFeed', () => {
  test('publishes each new snapshot', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    const { feed, epochs } = await open()
    await until('the first', () => epochs.length === 1)
    control.publish(aSnapshot({ epoch: 4 }))
    await until('the second', () => epochs.length === 2)
    expect(epochs).toEqual([3, 4])
    expect(feed.current()?.epoch).toBe(4)
    await feed.stop()
  })

  test('is current once subscribers have the newest snapshot, and not before', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    const stored = Promise.withResolvers<void>()
    let isStoring = false
    const slow: Files['open'] = async (path, mode) => {
      isStoring = true
      await stored.promise
      return systemFiles.open(path, mode)
    }
    const { feed, epochs } = await open({ files: { ...systemFiles, open: slow } })
    await until('the first', () => isStoring)
    const isCurrent = () => feed.isCurrent(AbortSignal.timeout(5_000))
    expect([epochs, await isCurrent()]).toEqual([[], false])
    stored.resolve()
    await until('its end', () => epochs.length === 1)
    expect(await isCurrent()).toBe(true)
    await control.sendingSlowly(async () => {
      control.publish(aSnapshot({ epoch: 4 }))
      expect(await isCurrent()).toBe(false)
    })
    await until('the second', () => epochs.length === 2)
    expect(await isCurrent()).toBe(true)
    await feed.stop()
  })

  test('starts from the stored copy if control is unreachable', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    const first = await open()
    await until('the first', () => first.epochs.length === 1)
    await first.feed.stop()
    const second = await open({ url: 'http://127.0.0.1:1' })
    expect(second.epochs).toEqual([3])
    await second.feed.stop()
  })

  describe('without control', () => {
    /** A millisecond counts as a second. */
    const fast: Clock = {
      ...systemClock,
      monotonic: () => systemClock.monotonic() * 1000,
      setTimer: (callback) => systemClock.setTimer(callback, 10),
    }

    test('says once that it works with what it has, or that it waits for the first configuration', async () => {
      const waiting = await open({ url: 'http://127.0.0.1:1', clock: fast })
      await until('its warning', () => waiting.warnings.length > 0)
      await waiting.feed.stop()
      expect(waiting.warnings).toEqual(['control not reached; waiting for the first configuration'])
      control.publish(aSnapshot({ epoch: 3 }))
      const { feed, epochs, warnings } = await open({ clock: fast })
      await until('the first', () => epochs.length === 1)
      control.isAway = true
      feed.registerAgain()
      await until('its warning', () => warnings.length > 0)
      await feed.stop()
      expect(warnings).toEqual(['cut off from control; working with the last configuration'])
    })

    test('does not say so of a node that control refuses', async () => {
      control.publish(aSnapshot({ epoch: 3 }))
      const accepted = await open()
      await until('the first', () => accepted.epochs.length === 1)
      await accepted.feed.stop()
      control.fence = 'node_removed'
      const { feed, warnings } = await open({ clock: fast })
      await until('a long time without control', () => feed.contact.ageMs > 30_000)
      await until('some refusals', () => control.fenced > 5)
      await feed.stop()
      expect(warnings).toEqual([])
    })

    test('asks again as soon as control answers another call', async () => {
      const backoffMs = 60_000
      const slow: Clock = { ...systemClock, setTimer: (callback) => systemClock.setTimer(callback, backoffMs) }
      control.publish(aSnapshot({ epoch: 3 }))
      const { feed, epochs } = await open({ clock: slow })
      await until('the first', () => epochs.length === 1)
      control.isAway = true
      feed.registerAgain()
      await until('the failed poll', () => feed.contact.mayLackChanges)
      control.isAway = false
      control.publish(aSnapshot({ epoch: 4 }))
      feed.controlAnswered()
      await until('the change', () => epochs.at(-1) === 4)
      await feed.stop()
    })

    test('leaves it to the registration to say that the node has not joined', async () => {
      let attempts = 0
      const counting: Clock = { ...fast, setTimer: (callback, ms) => fast.setTimer(callback, ++attempts && ms) }
      const { feed, warnings } = await open({ credential: 'stranger', clock: counting })
      await until('some attempts', () => attempts > 5)
      await feed.stop()
      expect([feed.contact.ageMs > 15_000, warnings]).toEqual([true, []])
    })
  })

  test('accepts a lower epoch from a control restored from a backup', async () => {
    control.publish(aSnapshot({ epoch: 9 }))
    const first = await open()
    await until('the first', () => first.epochs.length === 1)
    await first.feed.stop()
    control.publish(aSnapshot({ epoch: 2 }))
    const second = await open()
    await until('the restored one', () => second.epochs.at(-1) === 2)
    expect(second.epochs).toEqual([9, 2])
    await second.feed.stop()
  })

  test('applies committed seqs even if the stored snapshot is up to date', async () => {
    const endpoint = anEndpoint({ committed_seq: 41 })
    control.publish(aSnapshot({ epoch: 3, endpoints: [endpoint] }))
    const first = await open()
    await until('the first', () => first.epochs.length === 1)
    await first.feed.stop()
    const second = await open({ isRegistering: true })
    await until('the committed seq', () => second.epochs.length === 2)
    expect(second.feed.current()).toMatchObject({ epoch: 3, endpoints: [{ committed_seq: 41 }] })
    await second.feed.stop()
  })

  test('registers again without waiting for the end of a long poll', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    const { feed, epochs, registrations } = await open({ isRegistering: true })
    await until('the first', () => epochs.length === 1)
    feed.registerAgain()
    await until('the second registration', () => registrations() === 2)
    control.publish(aSnapshot({ epoch: 4 }))
    await until('the next', () => epochs.at(-1) === 4)
    await feed.stop()
  })

  test('a revocation that a poll tells is left to the registration, whatever another call learned meanwhile', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    let registered = 0
    const { feed, epochs, fence, registrations } = await open({
      isRegistering: true,
      onRefused: (refused) => {
        registered = registrations()
        control.fence = undefined
        refused.registerAgain()
      },
    })
    await until('the first', () => epochs.length === 1 && fence.wasAccepted)
    control.fence = 'node_revoked'
    // Ends the poll that waits: the next one is refused.
    control.publish(aSnapshot({ epoch: 4 }))
    await until('the refusal', () => control.fenced > 0)
    control.publish(aSnapshot({ epoch: 5 }))
    await until('the change', () => epochs.at(-1) === 5)
    expect([registrations() > registered, fence.reason]).toEqual([true, undefined])
    await feed.stop()
  })

  test('so is one that the request for the committed seqs tells, right after a registration', async () => {
    control.publish(aSnapshot({ epoch: 3 }))
    const { feed, epochs, fence, registrations } = await open({ isRegistering: true })
    await until('the first', () => epochs.length === 1 && fence.wasAccepted)
    const refused = control.fenced
    control.fence = 'node_revoked'
    feed.registerAgain()
    await until('the refusal', () => control.fenced > refused)
    const registered = registrations()
    control.fence = undefined
    control.publish(aSnapshot({ epoch: 4 }))
    await until('the change', () => epochs.at(-1) === 4)
    expect([registrations() > registered, fence.reason]).toEqual([true, undefined])
    await feed.stop()
  })

  test('resolves the definitions of bound views, also from the stored copy', async () => {
    const endpoint = anEndpoint({ views: [aBoundView()] })
    control.publish(aSnapshot({ epoch: 1, endpoints: [endpoint] }))
    const first = await open()
    await until('the first', () => first.epochs.length === 1)
    expect(first.feed.current()?.endpoints[0]?.views).toEqual(endpoint.views)
    await first.feed.stop()
    const second = await open({ url: 'http://127.0.0.1:1' })
    expect(second.feed.current()?.endpoints[0]?.views).toEqual(endpoint.views)
    await second.feed.stop()
  })

  test('appends updates to the stored copy, which survives truncation by a crash', async () => {
    control.publish(aSnapshot({ epoch: 1 }))
    const { feed, epochs } = await open()
    for (const epoch of [2, 3]) {
      await until(`epoch ${epoch - 1}`, () => epochs.at(-1) === epoch - 1)
      control.publish(aSnapshot({ epoch }))
    }
    await until('the last', () => epochs.at(-1) === 3)
    await feed.stop()
    const path = join(directory, 'snapshot.ndjson')
    const stored = await readFile(path)
    for (const [length, epoch] of [
      [stored.length, 3],
      [stored.length - 1, 2],
      [stored.length - 40, 2],
    ] as const) {
      await writeFile(path, stored.subarray(0, length))
      const again = await open({ url: 'http://127.0.0.1:1' })
      expect(again.epochs).toEqual([epoch])
      await again.feed.stop()
    }
  })

  test('applies a change even if the disk fails', async () => {
    control.publish(aSnapshot({ epoch: 1 }))
    const files: Files = {
      ...systemFiles,
      open: async () => {
        throw new Error('ENOSPC')
      },
    }
    const { feed, epochs } = await open({ files })
    await until('the snapshot', () => epochs.length === 1)
    await feed.stop()
  })

  test('starts even if the stored copy is unreadable', async () => {
    await systemFiles.makeDirectory(directory)
    const file = await systemFiles.open(join(directory, 'snapshot.ndjson'), 'create')
    await file.write([Buffer.from('{"epoch":')], 0)
    await file.close()
    control.publish(aSnapshot({ epoch: 1 }))
    const { feed, epochs } = await open()
    await until('the snapshot of control', () => epochs.length === 1)
    await feed.stop()
  })
})
