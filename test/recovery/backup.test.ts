/** `inlet backup` beside a running Inlet, and `inlet restore` after its disk is lost. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, statSync } from 'node:fs'
import { chown, cp, mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'
import { Installation } from '../support/installation.ts'
import { artifactPaths, readMarkers } from '../support/markers.ts'
import { readWithDuckDb } from '../support/parquet.ts'
import { until } from '../support/until.ts'

const lastLine = (text: string) => text.trim().split('\n').at(-1)

/** Each is killed: children of a supervisor end by themselves, and write until then. */
const processes = ['control', 'ingest', 'delivery'] as const

describeWith('processes', 'backup and restore', () => {
  let inlet: Installation
  let elsewhere: string
  let target: string

  beforeEach(async () => {
    inlet = await Installation.create()
    elsewhere = await mkdtemp(join(tmpdir(), 'inlet-backup-'))
    target = join(elsewhere, 'copy')
  })
  afterEach(async () => {
    await inlet[Symbol.asyncDispose]()
    await rm(elsewhere, { recursive: true, force: true })
  })

  /** The disk is lost, but for the buckets, which are the store here. */
  async function loseDisk(): Promise<void> {
    for (const name of processes) await inlet.kill(name)
    await rename(join(inlet.directory, 'buckets'), join(elsewhere, 'buckets'))
    for (const name of await readdir(inlet.directory)) await rm(join(inlet.directory, name), { recursive: true })
  }

  async function returnBuckets(): Promise<void> {
    await rename(join(elsewhere, 'buckets'), join(inlet.directory, 'buckets'))
  }

  /** Returns how often each number is in the raw Parquet that markers list. */
  async function delivered(id: string): Promise<ReadonlyMap<number, number>> {
    const bucket = join(inlet.directory, 'buckets/lake')
    const paths = artifactPaths(bucket, await readMarkers(bucket, 'in/let', id), 'parquet')
    const counts = new Map<number, number>()
    for (const { payload } of paths.length === 0 ? [] : await readWithDuckDb(paths)) {
      const { n } = JSON.parse(String(payload))
      counts.set(n, (counts.get(n) ?? 0) + 1)
    }
    return counts
  }

  test('under load: what was acknowledged before it is delivered once, and so is what comes after', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const acknowledged: number[] = []
    let sending = true
    let next = 0
    const senders = Array.from({ length: 4 }, async () => {
      while (sending) {
        const n = next++
        await inlet.ingest(id, `{"n":${n}}`)
        acknowledged.push(n)
      }
    })
    let before: readonly number[] = []
    for (let backups = 0; backups < 6; backups += 1) {
      const had = acknowledged.length
      await until('more records', () => acknowledged.length > had + 100)
      await rm(target, { recursive: true, force: true })
      before = [...acknowledged]
      const { exitCode, log } = await inlet.run('backup', target)
      expect(exitCode, log).toBe(0)
    }
    const had = acknowledged.length
    await until('records after the backup', () => acknowledged.length > had + 300, 30_000)
    sending = false
    await Promise.all(senders)
    await loseDisk()

    const { exitCode, log } = await inlet.run('restore', target)
    expect(exitCode, log).toBe(0)
    await returnBuckets()
    await inlet.start(...processes)
    const receipt = (await inlet.ingest(id, `{"n":-1}`)).body
    // No receipt of the lost machine names this segment.
    expect(receipt.segment_seq).toBeGreaterThan(1_000_000)
    await inlet.committed(id, [receipt.segment_seq])
    const counts = await delivered(id)
    expect(before.filter((n) => counts.get(n) !== 1)).toEqual([])
    expect([...counts].filter(([, count]) => count !== 1)).toEqual([])
    expect(counts.get(-1)).toBe(1)

    const rebuilt = await inlet.run('commits', 'rebuild')
    expect(rebuilt.exitCode, rebuilt.log).toBe(0)
    const recorded = (await inlet.ok('GET', `/v1/endpoints/${id}/commits?limit=200`)).items
    const markers = await readMarkers(join(inlet.directory, 'buckets/lake'), 'in/let', id)
    expect(recorded.length).toBe(markers.length)
  })

  test('only the user can read it, and it has buckets if wished', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    const { body } = await inlet.ingest(id, '{"n":1}')
    await inlet.committed(id, [body.segment_seq])
    const { exitCode, log } = await inlet.run('backup', target, '--with-buckets')
    expect(exitCode, log).toBe(0)
    const manifest = JSON.parse(readFileSync(join(target, 'manifest.json'), 'utf8'))
    expect(manifest).toMatchObject({ database: 'sqlite', has_buckets: true })
    const made = (isMarker: boolean) =>
      manifest.files
        .map(({ path }: { path: string }) => path)
        .filter((path: string) => path.startsWith('buckets/lake/') && path.includes('/commits/') === isMarker)
        .map((path: string) => statSync(join(target, path), { bigint: true }).birthtimeNs)
    // A marker that is copied after the files could list one that was not there yet.
    expect(made(true)).toHaveLength(1)
    expect(made(false).length).toBeGreaterThan(1)
    for (const time of made(false)) expect(time).toBeGreaterThanOrEqual(made(true)[0])
    for (const path of ['', 'manifest.json', 'inlet.db', 'node/wal'])
      expect(statSync(join(target, path)).mode & 0o077, path).toBe(0)
    for (const name of processes) await inlet.kill(name)
    await rm(inlet.directory, { recursive: true })
    const restored = await inlet.run('restore', target)
    expect(restored.exitCode, restored.log).toBe(0)
    await inlet.start(...processes)
    expect((await delivered(id)).get(1)).toBe(1)
    expect((await inlet.ok('GET', `/v1/endpoints/${id}/commits`)).items).toHaveLength(1)
  })

  test('what is wrong is refused, and nothing is changed', async () => {
    const nothing = await inlet.run('backup', target)
    expect([nothing.exitCode, nothing.log]).toEqual([1, expect.stringContaining('nothing to back up')])
    expect(existsSync(target)).toBe(false)
    await inlet.start(...processes)
    const inside = await inlet.run('backup', join(inlet.directory, 'copy'))
    expect([inside.exitCode, inside.log]).toEqual([1, expect.stringContaining('in the data directory')])
    expect((await inlet.run('backup', target)).exitCode).toBe(0)
    const again = await inlet.run('backup', target)
    expect([again.exitCode, again.log]).toEqual([1, expect.stringContaining('it is a backup already')])
    const full = await inlet.run('restore', target)
    expect([full.exitCode, full.log]).toEqual([1, expect.stringContaining('is not empty')])
    await loseDisk()
    const without = await inlet.run('restore', elsewhere)
    expect([without.exitCode, without.log]).toEqual([1, expect.stringContaining('is no backup')])

    const damaged = join(elsewhere, 'damaged')
    await cp(target, damaged, { recursive: true })
    appendFileSync(join(damaged, 'node/id'), 'x')
    const refused = await inlet.run('restore', damaged)
    expect([refused.exitCode, refused.log]).toEqual([1, expect.stringContaining('node/id is not as it was backed up')])
    expect(await readdir(inlet.directory)).toEqual([])
    const newer = join(elsewhere, 'newer')
    await mkdir(newer)
    await rename(join(damaged, 'manifest.json'), join(newer, 'manifest.json'))
    const manifest = JSON.parse(readFileSync(join(newer, 'manifest.json'), 'utf8'))
    await rm(join(newer, 'manifest.json'))
    appendFileSync(join(newer, 'manifest.json'), JSON.stringify({ ...manifest, format: 2, version: '9.0.0' }))
    const later = await inlet.run('restore', newer)
    expect([later.exitCode, later.log]).toEqual([1, expect.stringContaining('made by Inlet 9.0.0')])
    const climbing = { ...manifest, files: [{ path: '../out', bytes: 0, sha256: '0'.repeat(64) }] }
    await rm(join(newer, 'manifest.json'))
    appendFileSync(join(newer, 'manifest.json'), JSON.stringify(climbing))
    expect((await inlet.run('restore', newer)).log).toContain('is damaged')
  })

  test('a restore that is killed at any time starts nothing, and can be repeated', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await inlet.ingest(id, '{"n":1}')
    expect((await inlet.run('backup', target)).exitCode).toBe(0)
    await loseDisk()
    let interrupted = 0
    for (let tries = 0; tries < 40; tries += 1) {
      const child = inlet.spawn('restore', { args: [target] })
      const ended = once(child, 'exit')
      await until('restoring', () => existsSync(join(inlet.directory, 'restoring')) || child.exitCode !== null)
      // After a number of turns of the loop: a time would always hit the same place.
      for (let turns = 0; turns < tries * 40; turns += 1) await new Promise(setImmediate)
      child.kill('SIGKILL')
      await ended
      if (existsSync(join(inlet.directory, 'restoring'))) {
        interrupted += 1
        const { exitCode, log } = await inlet.run('start')
        expect([exitCode, log]).toEqual([1, expect.stringContaining('was interrupted')])
      } else {
        for (const name of await readdir(inlet.directory)) await rm(join(inlet.directory, name), { recursive: true })
      }
    }
    expect(interrupted).toBeGreaterThan(0)
    const { exitCode, log } = await inlet.run('restore', target)
    expect(exitCode, log).toBe(0)
    await returnBuckets()
    await inlet.start(...processes)
    await until('the record', async () => (await delivered(id)).get(1) === 1, 20_000)
  })

  test('a place that is no directory is refused in one line', async () => {
    await inlet.start(...processes)
    const file = join(elsewhere, 'file')
    appendFileSync(file, '')
    const link = join(elsewhere, 'link')
    await symlink(join(elsewhere, 'nowhere'), link)
    for (const place of [file, join(file, 'x'), link]) {
      const { exitCode, log } = await inlet.run('backup', place)
      expect([exitCode, lastLine(log)], place).toEqual([1, expect.stringMatching(/^ENO/)])
    }
    const { exitCode, log } = await inlet.run('restore', file)
    expect([exitCode, lastLine(log)]).toEqual([1, expect.stringMatching(/^ENOTDIR/)])
  })

  test.skipIf(process.getuid?.() !== 0)('root restores for the owner of the data directory', async () => {
    await inlet.start(...processes)
    expect((await inlet.run('backup', target)).exitCode).toBe(0)
    await loseDisk()
    // A container makes it before it restores.
    await mkdir(join(inlet.directory, 'compile-cache'))
    await chown(join(inlet.directory, 'compile-cache'), 1500, 1501)
    await chown(inlet.directory, 1500, 1501)
    const { exitCode, log } = await inlet.run('restore', target)
    expect(exitCode, log).toBe(0)
    for (const path of await readdir(inlet.directory, { recursive: true })) {
      const { uid, gid } = statSync(join(inlet.directory, path))
      expect([uid, gid], path).toEqual([1500, 1501])
    }
  })

  test.skipIf(process.getuid?.() !== 0)('one without room leaves nothing, and says so', async () => {
    await inlet.start(...processes)
    const small = join(elsewhere, 'small')
    await mkdir(small)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=200k', 'tmpfs', small])
    try {
      const { exitCode, log } = await inlet.run('backup', join(small, 'copy'))
      expect([exitCode, log]).toEqual([1, expect.stringContaining('there is no room for the backup')])
      expect(await readdir(small)).toEqual([])
      const root = await inlet.run('backup', small)
      expect([root.exitCode, root.log]).toEqual([1, expect.stringContaining('there is no room for the backup')])
      expect(await readdir(small)).toEqual([])
    } finally {
      execFileSync('umount', [small])
    }
  })

  test('a backup that is killed is none', async () => {
    await inlet.start(...processes)
    const { id } = await inlet.endpoint({ bucket: 'lake' })
    await inlet.ingest(id, `{"n":1,"text":"${'x'.repeat(200_000)}"}`)
    const child = inlet.spawn('backup', { args: [target] })
    const ended = once(child, 'exit')
    await until('the first file', () => existsSync(join(target, 'node')) || child.exitCode !== null)
    child.kill('SIGKILL')
    await ended
    if (!existsSync(join(target, 'manifest.json'))) {
      const again = await inlet.run('backup', target)
      expect([again.exitCode, again.log]).toEqual([1, expect.stringContaining('is not empty')])
    }
    expect((await inlet.api('GET', '/v1/endpoints')).status).toBe(200)
  })
})
