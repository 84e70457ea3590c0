/**
 * Memory of `npm start` on a new data directory: a minute after it is ready, and a minute after the load of the demo. The floor is a
 * Node process that does nothing. `node bench/idle-memory.ts [seconds]`
 *
 * RSS counts a shared page in each process that has it, PSS once. Node is copied first: other processes on the machine that run the same
 * file would lower PSS.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, copyFileSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { generateEvents } from '#cli/demo/events.ts'
import { inBatches } from '#cli/demo/lines.ts'
import { sendOverHttp } from '#cli/demo/send.ts'
import { sendOverMqtt } from '#cli/demo/send-mqtt.ts'
import { must } from '#lib/assert.ts'
import { ApiClient } from '../test/support/api-client.ts'
import { freePort } from '../test/support/installation.ts'
import { until } from '../test/support/until.ts'
import { inScratch } from './measure.ts'
import { heapOf, memoryOf, processTree, roleOf } from './process-memory.ts'

const idleSeconds = Number(process.argv[2] ?? 60)
const eventCount = 20_000
/** The share of the events that the demo sends over MQTT. */
const mqttCount = eventCount / 4
const apiKey = `ing_live_${'b'.repeat(32)}`
const columns = ['rss', 'pss', 'program', 'files', 'stacks', 'anonymous'] as const
/** Processes of Inlet. `npm start` also runs npm and a shell. */
const ours = new Set(['supervisor', 'control', 'delivery', 'ingest'])

/** Inlet itself never opens an inspector. */
const openInspectorOnSignal = `process.on('SIGUSR2', () => process.getBuiltinModule('node:inspector').open(0))`

await inScratch(async (directory) => {
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  const node = join(bin, 'node')
  copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE)

  const floor = spawn(node, ['-e', 'setInterval(() => {}, 1e9)'], { stdio: 'ignore' })
  const [control, nodeApi, ingest] = [await freePort(), await freePort(), await freePort()]
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: join(import.meta.dirname, '..'),
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: `${bin}${delimiter}${process.env['PATH']}`,
      HOME: directory,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(openInspectorOnSignal)}`,
      INLET_DATA_DIR: join(directory, 'data'),
      INLET_CONTROL_LISTEN: `127.0.0.1:${control}`,
      INLET_NODE_API_LISTEN: `127.0.0.1:${nodeApi}`,
      INLET_INGEST_LISTEN: `127.0.0.1:${ingest}`,
      INLET_BOOTSTRAP_API_KEY: apiKey,
      INLET_LOG_LEVEL: 'warn',
    },
  })
  const errors = createInterface(must(npm.stderr, 'standard error'))
  const client = new ApiClient({ apiUrl: `http://127.0.0.1:${control}`, ingestUrl: `http://127.0.0.1:${ingest}`, apiKey })
  try {
    await until('Inlet to be ready', () => isReady(client), 60_000)
    await setTimeout(idleSeconds * 1000)
    console.log(`  ${idleSeconds} s after the start, in MB of 1 000 000 bytes`)
    printMemory(floor, npm)
    await sendEvents(client)
    await setTimeout(idleSeconds * 1000)
    console.log(`\n  ${idleSeconds} s after the load of the demo: ${eventCount} events`)
    printMemory(floor, npm)
    console.log('\n  what is in the heap of V8 then')
    await printHeaps(npm, errors)
  } finally {
    floor.kill()
    const exited = once(npm, 'exit')
    for (const pid of processTree(must(npm.pid, 'a process'))) if (roleOf(pid) === 'supervisor') process.kill(pid)
    await exited
  }
})

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
  const batches = inBatches(lines.slice(mqttCount))
  const url = `${ingestUrl}/v1/ingest?endpoint=${id}`
  const segments = await sendOverHttp({ url, apiKey, batches, parallel: 4, onAcknowledged })
  await client.committed(
    id,
    [...segments].map((segment) => Number(segment.split('/')[1])),
  )
}

function printMemory(floor: ChildProcess, npm: ChildProcess): void {
  console.log(`  ${''.padEnd(16)}${columns.map((name) => name.padStart(10)).join('')}`)
  const total = { rss: 0, pss: 0 }
  const row = (name: string, pid: number) => {
    const memory = memoryOf(pid)
    console.log(`  ${name.padEnd(16)}${columns.map((column) => megabytes(memory[column])).join('')}`)
    return memory
  }
  row('floor', must(floor.pid, 'a process'))
  for (const pid of processTree(must(npm.pid, 'a process'))) {
    const role = roleOf(pid)
    const { rss, pss } = row(role, pid)
    if (!ours.has(role)) continue
    total.rss += rss
    total.pss += pss
  }
  console.log(`  ${'Inlet in all'.padEnd(16)}${megabytes(total.rss)}${megabytes(total.pss)}   without npm and its shell`)
}

async function printHeaps(npm: ChildProcess, errors: Interface): Promise<void> {
  console.log(`  ${''.padEnd(16)}${['in use', 'resident', 'young', 'Buffers'].map((name) => name.padStart(10)).join('')}`)
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
    if (!ours.has(role)) continue
    const { used, resident, young, buffers, hasStripper } = await heapOf(pid, nextAddress)
    const note = hasStripper ? '   and the type stripper: the compile cache was empty' : ''
    console.log(`  ${role.padEnd(16)}${[used, resident, young, buffers].map(megabytes).join('')}${note}`)
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1).padStart(10)
}
