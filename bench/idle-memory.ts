import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, copyFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { generateEvents } from '#cli/demo/events.ts'
import { sendOverHttp } from '#cli/demo/send.ts'
import { sendOverMqtt } from '#cli/demo/send-mqtt.ts'
import { must } from '#lib/assert.ts'
import { residentMemoryOf } from '#lib/resident-memory.ts'
import { ApiClient } from '../test/support/api-client.ts'
import { until } from '../test/support/until.ts'
import { freePort } from '../tools/services/processes.ts'
import { type Benchmark, cost, type Figure, say } from './figures.ts'
import { Scratch } from './measure.ts'
import { heapOf, memoryOf, processTree, roleOf } from './process-memory.ts'

const eventCount = 20_000
/** The share of the events that the demo sends over MQTT. */
const mqttCount = eventCount / 4
const apiKey = `ing_live_${'b'.repeat(32)}`
/** How long a worker without a task is kept. */
const workerIdleMs = 60_000
/** The default age of a segment is a minute. */
const segmentTimeoutMs = 120_000
/** MB of all processes of Inlet together. */
const allMax = 250
/** Processes that `npm start` runs beside Inlet. */
const others = new Set(['npm', 'sh'])

/** Inlet itself never opens an inspector. */
const openInspectorOnSignal = `process.on('SIGUSR2', () => process.getBuiltinModule('node:inspector').open(0))`

export const benchmark: Benchmark = {
  about:
    'PSS of `npm start` on a new data directory: a minute after it is ready, and a minute after the load of the demo, when its workers have left. PSS counts a page that several processes share once, RSS in each of them. The floor is a Node process that does nothing. `program` is the code of Node, `files` are libraries.',
  async *measure(options) {
    const idleSeconds = options.isQuick ? 10 : 60
    await using stack = new AsyncDisposableStack()
    const scratch = stack.use(await Scratch.create())
    // Other processes on the machine that run the same file would lower PSS.
    const bin = await scratch.make('bin')
    const node = join(bin, 'node')
    copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE)

    const floor = spawn(node, ['-e', 'setInterval(() => {}, 1e9)'], { stdio: 'ignore' })
    stack.defer(() => void floor.kill())
    const [control, nodeApi, ingest] = [await freePort(), await freePort(), await freePort()]
    const npm = spawn('npm', ['start', '--silent'], {
      cwd: join(import.meta.dirname, '..'),
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: `${bin}${delimiter}${process.env['PATH']}`,
        HOME: scratch.path,
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(openInspectorOnSignal)}`,
        INLET_DATA_DIR: join(scratch.path, 'data'),
        INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
        INLET_NODE_API_LISTEN: `127.0.0.1:${nodeApi}`,
        INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
        INLET_BOOTSTRAP_API_KEY: apiKey,
        INLET_LOG_LEVEL: 'warn',
      },
    })
    stack.defer(() => stop(npm))
    const errors = createInterface(must(npm.stderr, 'standard error'))
    const client = new ApiClient({ apiUrl: `http://127.0.0.1:${control}`, ingestUrl: `http://127.0.0.1:${ingest}`, apiKey })
    await until('Inlet to be ready', () => isReady(client), 60_000)
    say(`waiting for ${idleSeconds} s`)
    await setTimeout(idleSeconds * 1000)
    yield* memoryFigures('idle', floor, npm)
    await sendEvents(client)
    say(`waiting for ${idleSeconds} s after ${eventCount} events`)
    await setTimeout(idleSeconds * 1000)
    await until('workers to leave', () => workersOf(npm).length === 0, 2 * workerIdleMs)
    yield* memoryFigures('after events', floor, npm)
    yield* heapFigures(npm, errors)
  },
}

async function stop(npm: ChildProcess): Promise<void> {
  const exited = once(npm, 'exit')
  for (const pid of processTree(must(npm.pid, 'a process'))) if (roleOf(pid) === 'supervisor') process.kill(pid)
  await exited
}

/** Returns the processes that were started for a task. */
function workersOf(npm: ChildProcess): readonly number[] {
  return processTree(must(npm.pid, 'a process')).filter((pid) => roleOf(pid).endsWith(' worker'))
}

async function isReady({ apiUrl, ingestUrl }: ApiClient): Promise<boolean> {
  for (const url of [apiUrl, ingestUrl]) {
    const response = await fetch(`${url}/readyz`).catch(() => undefined)
    if (response?.ok !== true) return false
  }
  return true
}

/** Sends what the demo sends, and waits until it is committed. */
async function sendEvents(client: ApiClient): Promise<void> {
  const { ingestUrl } = client
  const [{ id }] = (await client.ok('GET', '/v1/endpoints')).items
  const lines = [...generateEvents(eventCount, 1)]
  const onAcknowledged = () => undefined
  await sendOverMqtt({
    url: `${ingestUrl.replace('http', 'ws')}/mqtt?endpoint=${id}`,
    apiKey,
    topic: 'bench',
    lines: lines.slice(0, mqttCount),
    onAcknowledged,
  })
  const segments = await sendOverHttp({
    url: ingestUrl,
    apiKey,
    endpoint: id,
    lines: lines.slice(mqttCount),
    onStored: onAcknowledged,
  })
  await client.committed(
    id,
    [...segments].map((segment) => Number(segment.split('/')[1])),
    segmentTimeoutMs,
  )
}

function* memoryFigures(when: string, floor: ChildProcess, npm: ChildProcess): Generator<Figure> {
  const bare = memoryOf(must(floor.pid, 'a process'))
  const total = { rss: 0, pss: 0 }
  for (const pid of processTree(must(npm.pid, 'a process'))) {
    const role = roleOf(pid)
    const { pss, ...parts } = memoryOf(pid)
    const peak = residentMemoryOf(pid)?.peakBytes ?? Number.NaN
    yield cost({
      ...{ work: `${role}, ${when}`, unit: 'MB', ours: pss / 1e6, floor: bare.pss / 1e6 },
      parts: inMegabytes({ ...parts, 'peak rss': peak }),
    })
    if (others.has(role)) continue
    total.rss += parts.rss
    total.pss += pss
  }
  yield cost({
    work: `Inlet in all, ${when}, without npm and its shell`,
    unit: 'MB',
    ours: total.pss / 1e6,
    floor: bare.pss / 1e6,
    goal: { ours: allMax },
    parts: inMegabytes({ rss: total.rss }),
  })
}

async function* heapFigures(npm: ChildProcess, errors: Interface): AsyncGenerator<Figure> {
  const nextAddress = () =>
    new Promise<string>((resolve) => {
      const listen = (line: string) => {
        const [, address] = /^Debugger listening on (ws:\S+)/.exec(line) ?? []
        if (address === undefined) return
        errors.off('line', listen)
        resolve(address)
      }
      errors.on('line', listen)
    })
  for (const pid of processTree(must(npm.pid, 'a process'))) {
    const role = roleOf(pid)
    if (others.has(role)) continue
    const { used, hasStripper, ...parts } = await heapOf(pid, nextAddress)
    if (hasStripper) say(`${role} has loaded the type stripper: the compile cache was empty`)
    yield cost({ work: `${role}, after events: heap of V8 in use`, unit: 'MB', ours: used / 1e6, parts: inMegabytes(parts) })
  }
}

function inMegabytes(parts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(parts).map(([name, bytes]) => [name, bytes / 1e6]))
}
