/**
 * MQTT ingest compared with its floor, a bare mqtt-packet server that sends PUBACK after an fdatasync that all waiting messages share, and
 * with mosquitto (Debian package), which stores nothing on disk here. One core for the server, another for the load.
 *
 * `node bench/mqtt.ts [rounds] [words in the name of the case, such as "QoS 1" or websocket]`. BENCH_PROFILE=DIRECTORY writes a CPU
 * profile of the Inlet server there.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { inScratch } from './measure.ts'
import type { MqttJob, MqttLoadMessage, MqttOutcome } from './mqtt-load.ts'
import { ask, median, next, pinned, type ServerMessage, start, stop, usageOf } from './rig.ts'

const messageBytes = 200
const goal = 0.8
const mosquittoPath = '/usr/sbin/mosquitto'
const clockTicksPerSecond = 100
const cases = (['websocket', 'tcp'] as const).flatMap((transport) =>
  ([1, 0] as const).flatMap((qos) =>
    [
      { connections: 50, window: qos === 1 ? 200 : 8 },
      { connections: 5_000, window: qos === 1 ? 4 : 1 },
    ].map((load) => ({ transport, qos, ...load })),
  ),
)

type Server = {
  readonly name: 'floor' | 'inlet' | 'mosquitto'
  readonly child: ChildProcess
  readonly ports: Record<MqttJob['transport'], number>
  /** Microseconds of CPU since the start. */
  usage(): Promise<number>
  clean(): Promise<void>
  stop(): Promise<void>
}
type Round = { readonly messagesPerSecond: number; readonly cpuMicros: number }

const rounds = Number(process.argv[2] ?? 3)
const words = process.argv.slice(3)
const profileDirectory = process.env['BENCH_PROFILE']

console.log(`MQTT ingest, ${messageBytes} B per message, durable before PUBACK, ${rounds} interleaved rounds`)
console.log(pinned ? '  server on core 0, load on core 1 (taskset)' : '  cores not pinned: no taskset, or only one core')

await inScratch(async (scratch) => {
  const load = start(1, [process.execPath, join(import.meta.dirname, 'mqtt-load.ts')])
  const servers: Server[] = [await startOurs('floor', scratch), await startOurs('inlet', scratch)]
  if (existsSync(mosquittoPath)) servers.push(await startMosquitto(scratch))
  else console.log('  without mosquitto, which is not installed (Debian package mosquitto)')

  console.log(
    `  ${'case'.padEnd(34)}${'floor /s'.padStart(10)}${'inlet /s'.padStart(10)}${'ratio'.padStart(7)}${'mosquitto /s'.padStart(14)}${'ratio'.padStart(7)}   CPU a message: floor, inlet, mosquitto`,
  )
  for (const { transport, qos, connections, window } of cases) {
    const name = `QoS ${qos}, ${transport}, ${connections} connections`
    if (!words.every((word) => name.includes(word))) continue
    const results = new Map<string, Round[]>(servers.map((server) => [server.name, []]))
    for (let round = 0; round < rounds; round += 1) {
      for (const server of servers) {
        const port = server.ports[transport]
        const job = { port, transport, qos, connections, window, messageBytes, warmUpMs: 700, measureMs: 1_500 }
        results.get(server.name)?.push(await measure(load, server, job))
      }
    }
    print(name, results)
  }
  for (const server of servers) await server.stop()
  load.kill()
})

async function measure(load: ChildProcess, server: Server, job: MqttJob): Promise<Round> {
  load.send(job)
  await next(load)
  const before = await server.usage()
  const { outcome } = (await next(load)) as MqttLoadMessage & { outcome: MqttOutcome }
  const used = (await server.usage()) - before
  await server.clean()
  return { messagesPerSecond: outcome.messages / outcome.seconds, cpuMicros: used / outcome.messages }
}

function print(name: string, results: ReadonlyMap<string, readonly Round[]>): void {
  const of = (server: Server['name'], what: keyof Round) => median((results.get(server) ?? []).map((round) => round[what]))
  const [floor, inlet, mosquitto] = (['floor', 'inlet', 'mosquitto'] as const).map((server) => of(server, 'messagesPerSecond'))
  const cpu = (['floor', 'inlet', 'mosquitto'] as const).map((server) => of(server, 'cpuMicros').toFixed(2)).join(', ')
  const ratio = (inlet ?? 0) / (floor ?? 0)
  const cells = [
    (floor ?? 0).toFixed(0).padStart(10),
    (inlet ?? 0).toFixed(0).padStart(10),
    ratio.toFixed(2).padStart(7),
    (mosquitto ?? 0).toFixed(0).padStart(14),
    ((inlet ?? 0) / (mosquitto ?? 0)).toFixed(2).padStart(7),
  ]
  console.log(`  ${name.padEnd(34)}${cells.join('')}   ${cpu} µs${ratio >= goal ? '' : `  below the goal of ${goal}`}`)
}

async function startOurs(name: 'floor' | 'inlet', scratch: string): Promise<Server> {
  const directory = join(scratch, name)
  await mkdir(directory)
  const tcp = await freePort()
  const profile = name === 'inlet' && profileDirectory !== undefined ? ['--cpu-prof', '--cpu-prof-dir', profileDirectory] : []
  const child = start(0, [
    process.execPath,
    ...profile,
    join(import.meta.dirname, 'mqtt-servers.ts'),
    name,
    directory,
    String(tcp),
  ])
  const { ready } = (await next(child)) as ServerMessage & { ready: string }
  return {
    name,
    child,
    ports: { tcp, websocket: Number(new URL(ready).port) },
    usage: async () => usageOf(await ask(child, 'usage')),
    clean: async () => {
      await ask(child, 'clean')
    },
    stop: () => stop(child),
  }
}

async function startMosquitto(scratch: string): Promise<Server> {
  const [tcp, websocket] = [await freePort(), await freePort()]
  const path = join(scratch, 'mosquitto.conf')
  await writeFile(
    path,
    `listener ${tcp} 127.0.0.1\nlistener ${websocket} 127.0.0.1\nprotocol websockets\nallow_anonymous true\npersistence false\nlog_type error\nuser root\n`,
  )
  const child = start(0, [mosquittoPath, '-c', path], false)
  await answers(tcp)
  return {
    name: 'mosquitto',
    child,
    ports: { tcp, websocket },
    // proc(5): fields 14 and 15 are user and system time in ticks. Field 2 is in parentheses and may contain spaces.
    usage: async () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return ((Number(fields[11]) + Number(fields[12])) * 1e6) / clockTicksPerSecond
    },
    clean: async () => undefined,
    stop: async () => {
      child.kill()
      await once(child, 'exit')
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

async function answers(port: number): Promise<void> {
  const deadline = performance.now() + 5_000
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isThere = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isThere) return
    if (performance.now() > deadline) throw new Error(`no server is listening on port ${port}`)
  }
}
