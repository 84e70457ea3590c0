/**
 * A listing of the log is old by the time it is used. These tests stop a scan right after it has listed a segment, let the outbox,
 * another delivery or the operator go on, and continue the scan.
 * Law: a segment that is gone is never parked or reported, and no segment is delivered twice.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32c } from '@node-rs/crc32'
import { expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { aDestination, anEndpointTo, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

/** Files that hold back a scan after it has read the size of a sealed segment, which is its last look at it. */
class HeldScans {
  /** Number of scans that have begun. */
  scans = 0
  #armed = false
  #release: (() => void) | undefined

  readonly files: Files

  constructor(walDirectory: string) {
    this.files = {
      ...systemFiles,
      list: async (path) => {
        if (path === walDirectory) this.scans += 1
        return systemFiles.list(path)
      },
      // Otherwise sizes are read once.
      changedAt: async () => undefined,
      bytes: async (path) => {
        const bytes = await systemFiles.bytes(path)
        if (this.scans === 0 || !this.#armed || !path.endsWith('.wal') || bytes === undefined) return bytes
        this.#armed = false
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#release = resolve
        await promise
        return bytes
      },
    }
  }

  /** Holds the next scan that finds a sealed segment. Resolves when it is held. */
  async hold(): Promise<void> {
    this.#release = undefined
    this.#armed = true
    await until('the scan to be held', () => this.#release !== undefined)
  }

  /** Continues the held scan, and waits until the next one has ended as well. */
  async resume(): Promise<void> {
    this.#release?.()
    const { scans } = this
    // After a long scan, as the held one may be, delivery rests for up to ten seconds.
    await until('two more scans', () => this.scans >= scans + 3, 30_000)
  }
}

async function furnished() {
  const endpoint = anEndpointTo(aDestination())
  const node = await DeliveryNode.create(endpoint)
  const directory = join(node.config.paths.wal, endpoint.id)
  const held = new HeldScans(node.config.paths.wal)
  node.files = held.files
  const names = async (path: string, suffix: string) => (await readdir(path)).filter((name) => name.endsWith(suffix))
  const wals = () => names(directory, '.wal')
  /** Expects none of the effects that a segment that is gone must not have: a parked segment, a block, another conversion. */
  const expectNothingLeft = async () => {
    expect(await names(node.config.paths.parked, '.parked.json')).toEqual([])
    const reported = node.control.heartbeats.length
    await until('a heartbeat', () => node.control.heartbeats.length > reported)
    expect(node.lag(endpoint.id)?.blocked_by ?? null).toBeNull()
    expect(node.commits.map(({ seq }) => seq)).toEqual([0])
  }
  return { endpoint, node, held, wals, names, expectNothingLeft }
}

test('listed before the outbox of an earlier run was sent, and removed since', async () => {
  const { endpoint, node, held, wals, expectNothingLeft } = await furnished()
  await using _ = node
  await node.seal(endpoint.id, '{"n":1}')
  node.control.refusesCommits = true
  await node.start()
  await until('the outbox', async () => (await readdir(node.config.paths.outbox)).some((name) => name.endsWith('.json')))
  await node.stop(AbortSignal.abort())
  await Promise.all([held.hold(), node.start()])
  node.control.refusesCommits = false
  await until('the removal', async () => (await wals()).length === 0)
  await until('the end of the entry', async () => (await readdir(node.config.paths.outbox)).length === 0)
  await held.resume()
  await expectNothingLeft()
})

test('listed while its delivery ends, and removed before the listing is used', async () => {
  const { endpoint, node, held, wals, expectNothingLeft } = await furnished()
  await using _ = node
  await node.seal(endpoint.id, '{"n":1}')
  const { promise, resolve } = Promise.withResolvers<void>()
  node.stores.delay = () => promise
  await node.start()
  await until('the upload', () => node.stores.attempts > 0)
  await held.hold()
  resolve()
  await until('the removal', async () => (await wals()).length === 0)
  await held.resume()
  await expectNothingLeft()
  expect(node.stores.done).toHaveLength(2)
})

test('removed by someone else after it was listed', async () => {
  const { endpoint, node, held, names } = await furnished()
  await using _ = node
  await node.seal(endpoint.id, '{"n":1}')
  await Promise.all([held.hold(), node.start()])
  await rm(join(node.config.paths.wal, endpoint.id), { recursive: true })
  await held.resume()
  await node.seal(endpoint.id, '{"n":2}')
  await until('the next segment', () => node.commits.length === 1)
  expect(await names(node.config.paths.parked, '.parked.json')).toEqual([])
})

test('listed while its delivery parks it', async () => {
  const { endpoint, node, held, wals } = await furnished()
  await using _ = node
  await node.seal(endpoint.id, '{"n":1}')
  await makeForeign(join(node.config.paths.wal, endpoint.id, (await wals())[0] ?? ''))
  const { promise, resolve } = Promise.withResolvers<void>()
  let [opened, parkings] = [0, 0]
  node.files = {
    ...held.files,
    open: async (path, mode) => {
      // The first to open it is the scan, which reads the time of the seal. The count of its records is another one.
      if (path.endsWith('.wal') && opened++ > 0) await promise
      return held.files.open(path, mode)
    },
    rename: async (from, to) => {
      if (to.endsWith('.parked.json')) parkings += 1
      await held.files.rename(from, to)
    },
  }
  await node.start()
  await until('the delivery to begin', () => opened === 3)
  await held.hold()
  resolve()
  await until('the parking', () => parkings === 1)
  await held.resume()
  expect(parkings).toBe(1)
  await until('the report', () => node.lag(endpoint.id)?.blocked_by?.startsWith('1 segment') === true)
})

/** Gives the file a header of another format version, with a valid checksum. */
async function makeForeign(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.writeUInt16LE(99, 8)
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 124)), 124)
  await writeFile(path, bytes)
}
