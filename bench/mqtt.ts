import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type Benchmark, cost, isWanted, type Peer, rate, say } from './figures.ts'
import { median, Scratch } from './measure.ts'
import type { MqttJob, MqttLoadMessage, MqttOutcome } from './mqtt-load.ts'
import { ask, cores, next, type ServerMessage, start, stop, usageOf } from './rig.ts'

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

export const benchmark: Benchmark = {
  about: `MQTT messages of ${messageBytes} bytes, durable before PUBACK; the server on one core, the load on another, rounds in turn. The floor is a bare mqtt-packet server that sends PUBACK after an fdatasync that all waiting messages share.`,
  async *measure(options) {
    say(cores)
    await using stack = new AsyncDisposableStack()
    const scratch = stack.use(await Scratch.create())
    const load = start(1, [process.execPath, join(import.meta.dirname, 'mqtt-load.ts')])
    stack.defer(() => void load.kill())
    const servers: Server[] = []
    const add = (server: Server) => {
      servers.push(server)
      stack.defer(() => server.stop())
    }
    add(await startOurs('floor', scratch))
    add(await startOurs('inlet', scratch))
    if (existsSync(mosquittoPath)) add(await startMosquitto(scratch))

    const rounds = options.rounds ?? 3
    const [warmUpMs, measureMs] = options.isQuick ? [400, 700] : [700, 1_500]
    for (const { transport, qos, connections, window } of cases) {
      const name = `QoS ${qos}, ${transport}, ${connections} connections`
      if (!isWanted(name, options) || (options.isQuick && qos === 0 && connections > 50)) continue
      say(name)
      const results = new Map<string, Round[]>(servers.map((server) => [server.name, []]))
      for (let round = 0; round < rounds; round += 1) {
        for (const server of servers) {
          const port = server.ports[transport]
          const job = { port, transport, qos, connections, window, messageBytes, warmUpMs, measureMs }
          results.get(server.name)?.push(await measure(load, server, job))
        }
      }
      const of = (server: Server['name'], what: keyof Round) => median((results.get(server) ?? []).map((round) => round[what]))
      const figure = (what: keyof Round) => ({
        ours: of('inlet', what),
        floor: of('floor', what),
        peers: [beside(results.has('mosquitto') ? of('mosquitto', what) : undefined)],
      })
      yield rate({ work: name, unit: 'messages/s', ...figure('messagesPerSecond'), goal: { ratio: goal } })
      yield cost({ work: `${name}: CPU a message`, unit: 'µs', ...figure('cpuMicros') })
    }
  },
}

function beside(value: number | undefined): Peer {
  if (value === undefined) return { name: 'mosquitto', install: 'apt-get install mosquitto' }
  const [, version] = /version (\S+)/.exec(spawnSync(mosquittoPath, ['-h'], { encoding: 'utf8' }).stdout) ?? []
  return { name: `mosquitto ${version}`, value, guarantee: 'writes nothing to disk, nobody subscribes' }
}

async function measure(load: ChildProcess, server: Server, job: MqttJob): Promise<Round> {
  load.send(job)
  await next(load)
  const before = await server.usage()
  const { outcome } = (await next(load)) as MqttLoadMessage & { outcome: MqttOutcome }
  const used = (await server.usage()) - before
  await server.clean()
  return { messagesPerSecond: outcome.messages / outcome.seconds, cpuMicros: used / outcome.messages }
}

async function startOurs(name: 'floor' | 'inlet', scratch: Scratch): Promise<Server> {
  const directory = await scratch.make(name)
  const tcp = await freePort()
  const child = start(0, [
    process.execPath,
    ...process.execArgv,
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

async function startMosquitto(scratch: Scratch): Promise<Server> {
  const [tcp, websocket] = [await freePort(), await freePort()]
  const path = join(scratch.path, 'mosquitto.conf')
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
