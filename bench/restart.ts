import type { ChildProcess } from 'node:child_process'
import { type Dirent, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { dataPaths } from '#config/data-paths.ts'
import { MiB } from '#lib/bytes.ts'
import type { Installation } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { generatedEvents } from './events.ts'
import { type Benchmark, cost, isWanted, say } from './figures.ts'
import { createManyEndpoints, trickle } from './many-endpoints-installation.ts'
import { type WalFiles, writeWal } from './wal-files.ts'

type Case = WalFiles & { readonly name: string; readonly logs: number }

/** So long a node may refuse data. */
const secondsMax = 5
const pollMs = 5

export const benchmark: Benchmark = {
  about:
    'From the start of a process until ingest acknowledges a request, delivery has uploaded a file, control is ready. The floor is a start with an empty log. `large`: 1 GB in eight logs, each with a sealed and an open segment. `files`: ten sealed segments in each log. `killed`: nine of them, and an open one, as kill -9 leaves it.',
  async *measure(options) {
    const count = options.isQuick ? 1_000 : 10_000
    const many = await createManyEndpoints(count, { segmentMaxAgeSeconds: 60 })
    await using installation = many.installation
    const [first] = many.endpoints
    if (first === undefined) throw new Error('there is no endpoint')
    const paths = dataPaths(installation.directory)
    const control = await secondsUntil(() => installation.start('control'))
    yield cost({ work: `control, ${count} endpoints`, unit: 's', ours: control, goal: { ours: secondsMax } })
    await installation.start('ingest')
    await until('the endpoints to be known', () => trickle(first), 60_000)
    await installation.kill('ingest')

    let floor: number | undefined
    for (const { name, logs, ...files } of cases(count)) {
      if (logs > 0 && !isWanted(name, options)) continue
      say(`writing a log: ${name}`)
      removeLogs(paths.wal)
      const ids = many.endpoints.slice(0, logs).map(({ id }) => id)
      const work = `${name}: ${writeWal(paths.wal, ids, files)} files in ${logs} logs`
      const ingest = await timeStart(installation, 'ingest', () => trickle(first))
      floor ??= ingest
      yield cost({ work: `ingest, ${work}`, unit: 's', ours: ingest, floor, goal: { ours: secondsMax } })
      await installation.kill('ingest')
      if (logs === 0) continue
      rmSync(installation.buckets, { recursive: true, force: true })
      const delivery = await timeStart(installation, 'delivery', async () => hasObject(installation.buckets))
      yield cost({ work: `delivery, ${work}`, unit: 's', ours: delivery })
      await installation.kill('delivery')
    }
  },
}

function cases(count: number): readonly Case[] {
  const payload = Buffer.from('{"column_0":"a","column_1":1,"column_2":"2026-01-01T00:00:00Z"}\n')
  const small = { logs: count, payload, framesPerSegment: 1 }
  return [
    { ...small, name: 'empty', logs: 0, sealed: 0, isOpen: false },
    { name: 'large', logs: 8, sealed: 1, isOpen: true, payload: generatedEvents(MiB).lines, framesPerSegment: 63 },
    { ...small, name: 'files', sealed: 10, isOpen: false },
    { ...small, name: 'killed', sealed: 9, isOpen: true },
  ]
}

/** Leaves the file by which the node knows its log again. */
function removeLogs(wal: string): void {
  for (const entry of readdirSync(wal, { withFileTypes: true }))
    if (entry.isDirectory()) rmSync(join(wal, entry.name), { recursive: true })
}

function timeStart(installation: Installation, command: string, isUp: () => Promise<boolean>): Promise<number> {
  return secondsUntil(async () => {
    const child = installation.spawn(command)
    while (!(await isUp())) await waitForIt(child, installation)
  })
}

async function waitForIt(child: ChildProcess, { log }: Installation): Promise<void> {
  if (child.exitCode !== null) throw new Error(`the process ended:\n${log}`)
  await setTimeout(pollMs)
}

async function secondsUntil(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1000
}

/** Whether a bucket has an object. Names that begin with a dot are not buckets. */
function hasObject(directory: string): boolean {
  const isFile = (entry: Dirent) => entry.isFile() || (entry.isDirectory() && hasObject(join(entry.parentPath, entry.name)))
  const entries = existsSync(directory) ? readdirSync(directory, { withFileTypes: true }) : []
  return entries.some((entry) => !entry.name.startsWith('.') && isFile(entry))
}
