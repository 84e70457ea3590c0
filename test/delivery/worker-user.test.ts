import { execFile } from 'node:child_process'
import { chmod, lchown, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '#config/config.ts'
import { conversionBounds, createConversionPool } from '#delivery/convert/conversion-pool.ts'
import { ConversionRunner } from '#delivery/convert/conversion-runner.ts'
import { ExpensiveViews } from '#delivery/convert/expensive-views.ts'
import { SegmentBuild } from '#delivery/convert/segment-build.ts'
import { WorkerAccess } from '#delivery/convert/worker-access.ts'
import { must } from '#lib/assert.ts'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { Sandbox } from '#lib/sandbox.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { aBoundView } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

const user = { uid: 65_534, gid: 65_533 }
const isRoot = process.getuid?.() === 0
const sandbox = await Sandbox.probe()
const canChangeUser = isRoot && sandbox.missing.length === 0
const never = new AbortController().signal

let data = ''
let paths = readConfig({}).paths
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'inlet-worker-access-'))
  ;({ paths } = readConfig({ INLET_DATA_DIR: data }))
  await mkdir(paths.node, { mode: 0o700 })
  await mkdir(paths.scratch, { mode: 0o700 })
})
afterEach(() => rm(data, { recursive: true }))

/** Seals a segment of one record in each log. */
async function seal(...logs: readonly string[]) {
  const wal = new LocalLogWriter({
    ...system,
    directory: paths.wal,
    logger: createLogger('wal', 'silent'),
  })
  await wal.start()
  for (const log of logs) {
    wal.configure(log, { segmentBytes: MiB, segmentMaxAgeMs: 3_600_000, seqAbove: -1 })
    await wal.append(log, {
      ...{ layout: 'single', receivedAtMicros: Date.now() * 1000, recordCount: 1 },
      ...{ envelope: encodeEnvelope({ protocol: 'http' }), payload: [Buffer.from('{"n":1}')] },
    })
  }
  await wal.stop(AbortSignal.timeout(10_000))
  return await new LocalSegmentSource({ ...system, directory: paths.wal }).list()
}

const noSlots = { count: 0, lend: async () => undefined }

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

// Needs root, and the programs of util-linux.
describe.skipIf(!canChangeUser)('conversions as another user (needs root)', async () => {
  const confined = canChangeUser ? await sandbox.as(user) : sandbox
  const access = () => new WorkerAccess({ directory: paths.node, user })

  async function start() {
    const made = access()
    await made.prepare()
    const commandLine = confined.confine(conversionBounds(192 * MiB))
    const pool = createConversionPool({ clock: systemClock, commandLine, cwd: made.startDirectory })
    return {
      pool,
      runner: new ConversionRunner({
        ...system,
        pool,
        segments: new LocalSegmentSource({ ...system, directory: paths.wal }),
        scratch: paths.scratch,
        access: made,
      }),
    }
  }

  /** Runs a script in the place of a conversion process. Returns what it prints. */
  async function runAs(script: string): Promise<string> {
    const [file = '', ...args] = confined.confine(conversionBounds(192 * MiB))([process.execPath, '-e', script])
    return (await promisify(execFile)(file, args, { env: {}, cwd: paths.node })).stdout.trim()
  }

  /** Returns how an attempt at each of the calls of `fs` ends. */
  async function attempt(...calls: readonly string[]): Promise<readonly string[]> {
    const attempts = calls.map((call) => `try { fs.${call}; console.log('works') } catch (error) { console.log(error.code) }`)
    return (await runAs(`const fs = require('fs'); ${attempts.join('; ')}`)).split('\n')
  }

  test('build the files of a segment, and leave only what its owner may use', async () => {
    const [segment] = await seal('log')
    const { bytes, path, ...identity } = must(segment, 'a segment')
    const { pool, runner } = await start()
    const request = { segment: identity, bytes, outputFormats: ['parquet', 'parquet_views'], memoryBytes: 192 * MiB } as const
    const build = new SegmentBuild(runner, new ExpensiveViews(), { ...request, views: [aBoundView()] }, 1)
    const built = must(await build.attempt(noSlots, never), 'the files')
    await pool.stop()
    expect(built.failed).toEqual([])
    expect(built.files.map(({ rows }) => rows)).toEqual([1, 1])
    const directory = dirname(must(built.files[0], 'a file').path)
    const kept = await readdir(directory)
    for (const name of kept) {
      expect(await stat(join(directory, name))).toMatchObject({ uid: process.getuid?.(), gid: process.getgid?.() })
      expect(await modeOf(join(directory, name))).toBe('600')
    }
    expect([await modeOf(path), await modeOf(directory)]).toEqual(['600', '700'])
    expect(await modeOf(data)).toBe('700')
    await built.remove()
    expect(await readdir(paths.scratch)).toEqual([])
  })

  test('ask for the keys of a window, whose index they cannot read', async () => {
    const [segment] = await seal('log')
    const { bytes, path: _, ...identity } = must(segment, 'a segment')
    const { pool, runner } = await start()
    const definition = { columns: [{ name: 'n', type: 'INTEGER', path: '$.n' }], dedupe_by: ['n'], dedupe_within: '1h' }
    const view = { ...aBoundView({ definition }), hasWindow: true }
    const asked: (readonly [string, number])[] = []
    const build = async (isKnown: number) => {
      const findKeys = async (viewId: string, keys: Uint8Array) => {
        asked.push([viewId, keys.length])
        return Uint8Array.of(isKnown)
      }
      const request = {
        segment: identity,
        bytes,
        outputFormats: ['parquet_views'],
        memoryBytes: 192 * MiB,
        views: [view],
      } as const
      const segmentBuild = new SegmentBuild(runner, new ExpensiveViews(), { ...request, findKeys }, 1)
      return must(await segmentBuild.attempt(noSlots, never), 'the files')
    }
    const first = await build(0)
    const keysPath = must(first.keys.get(view.view_id), 'a file of keys')
    expect([await modeOf(keysPath), (await stat(keysPath)).size]).toEqual(['600', 16])
    expect(first.views).toMatchObject([{ accepted: 1, dropped: 0 }])
    expect((await build(1)).views).toMatchObject([{ accepted: 0, dropped: 1, duplicates: 1 }])
    await pool.stop()
    expect(asked).toEqual([
      [view.view_id, 16],
      [view.view_id, 16],
    ])
  })

  test('reach nothing of Inlet but the segment and the build directory, and these only during the task', async () => {
    const [segment, other] = await seal('log', 'other')
    const input = must(segment, 'a segment').path
    const secrets = [paths.nodeCredential, paths.markerKey, paths.deliverySnapshot, paths.walNodeId, join(paths.outbox, 'a.json')]
    secrets.push(paths.nodeToken, paths.database, paths.secretKey)
    await mkdir(paths.outbox, { mode: 0o700 })
    for (const path of secrets) await writeFile(path, 'secret', { mode: 0o600 })
    secrets.push(join(paths.wal, 'salt-key'), must(other, 'another segment').path)
    const directory = await mkdtemp(join(paths.scratch, 'build-'))
    const made = access()
    await made.prepare()
    const inside = (path: string) => JSON.stringify(made.inside(path) || '.')
    const log = dirname(input)

    {
      await using _access = await made.grant({ inputs: [input], directory })
      expect(await attempt(`readFileSync(${inside(input)})`, `writeFileSync(${inside(join(directory, 'file'))}, '')`)).toEqual([
        ...['works', 'works'],
      ])
      const refused = [
        ...secrets.flatMap((path) => [`readFileSync(${inside(path)})`, `readFileSync(${JSON.stringify(path)})`]),
        ...[data, paths.node, paths.wal, log, paths.scratch].map((path) => `readdirSync(${inside(path)})`),
        ...[input, join(log, 'new'), join(paths.wal, 'new'), join(paths.scratch, 'new'), join(paths.node, 'new')].map(
          (path) => `writeFileSync(${inside(path)}, '')`,
        ),
        `unlinkSync(${inside(input)})`,
        `renameSync(${inside(input)}, ${inside(join(directory, 'moved'))})`,
        `chmodSync(${inside(input)}, 0o666)`,
      ]
      const ends = await attempt(...refused)
      expect(refused.filter((_, index) => !['EACCES', 'EPERM'].includes(ends[index] ?? ''))).toEqual([])
    }
    const afterwards = await attempt(
      `readFileSync(${inside(input)})`,
      `readFileSync(${inside(join(directory, 'file'))})`,
      `writeFileSync(${inside(join(directory, 'late'))}, '')`,
    )
    expect(afterwards).toEqual(['EACCES', 'EACCES', 'EACCES'])
  })

  test('have no capabilities', async () => {
    await access().prepare()
    const status = await runAs(`console.log(require('fs').readFileSync('/proc/self/status', 'utf8'))`)
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(status).toMatch(new RegExp(`${set}:\\s+0+$`, 'm'))
    expect(status).toMatch(/NoNewPrivs:\s+1/)
    expect(status).toMatch(/Uid:\s+65534\s+65534\s+65534\s+65534/)
    expect(status).toMatch(/Gid:\s+65533\s+65533\s+65533\s+65533/)
    expect(status).toMatch(/Groups:\s*(65533)?\s*$/m)
  })

  test('leave nothing behind if they are killed', async () => {
    const [segment] = await seal('log')
    const { bytes, path, ...identity } = must(segment, 'a segment')
    const { pool, runner } = await start()
    const abort = new AbortController()
    const request = { segment: identity, bytes, outputFormats: ['parquet'], views: [], memoryBytes: 192 * MiB } as const
    const build = new SegmentBuild(runner, new ExpensiveViews(), request, 1)
    const building = build.attempt(noSlots, abort.signal)
    await until('a file of the process', async () => (await readdir(paths.scratch, { recursive: true })).length > 1)
    abort.abort(new Error('shutting down'))
    await Promise.allSettled([building])
    await build.remove()
    await pool.stop()
    expect(await readdir(paths.scratch)).toEqual([])
    expect(await modeOf(path)).toBe('600')
  })

  test('cannot pass a secret off as a file that they built', async () => {
    const directory = await mkdtemp(join(paths.scratch, 'build-'))
    const made = access()
    await writeFile(paths.nodeToken, 'secret', { mode: 0o600 })
    await symlink(paths.nodeToken, join(directory, 'link'))
    await lchown(join(directory, 'link'), user.uid, user.gid)
    await writeFile(join(directory, 'of-root'), '')
    await expect(made.take(directory, ['link'])).rejects.toThrow('the conversion process did not write link')
    await expect(made.take(directory, ['of-root'])).rejects.toThrow('the conversion process did not write of-root')
    await expect(made.take(directory, ['..'])).rejects.toThrow('the conversion process did not write ..')
  })
})

test('nothing is opened for others if workers run as the user of Inlet', async () => {
  const directory = await mkdtemp(join(paths.scratch, 'build-'))
  const input = join(paths.node, 'input')
  await writeFile(input, '', { mode: 0o600 })
  await chmod(paths.node, 0o700)
  const access = new WorkerAccess({ directory: paths.node, user: undefined })
  await access.prepare()
  const modes = () => Promise.all([paths.node, paths.scratch, directory, input].map(modeOf))
  await using _access = await access.grant({ inputs: [input], directory })
  expect(await modes()).toEqual(['700', '700', '700', '600'])
  expect([access.inside(input), access.outside(input), access.startDirectory]).toEqual([input, input, undefined])
  expect(await readFile(input, 'utf8')).toBe('')
})

test('a node that cannot give files to the user says what to do', async () => {
  const access = new WorkerAccess({ directory: join(data, 'missing'), user })
  await expect(access.prepare()).rejects.toThrow(
    /^INLET_WORKER_USER: cannot give \S+ to group 65533 \(.*\); run delivery as root/,
  )
})
