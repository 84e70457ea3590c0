import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connectAsync } from 'mqtt'
import { freePort } from '../tools/services/processes.ts'
import { findProgram, howToInstall } from './counterparts.ts'
import { type Benchmark, cost, isWanted, type Peer, rate, say } from './figures.ts'
import { median, Scratch } from './measure.ts'
import type { MqttJob, MqttLoadMessage, MqttOutcome } from './mqtt-load.ts'
import { ask, cores, next, type ServerMessage, start, stop, usageOf } from './rig.ts'

const messageBytes = 200
const goal = 0.8
const clockTicksPerSecond = 100
const cases = (['websocket', 'tcp'] as const).flatMap((transport) =>
  ([1, 0] as const).flatMap((qos) =>
    [
      { connections: 50, window: qos === 1 ? 200 : 8 },
      { connections: 5_000, window: qos === 1 ? 4 : 1 },
    ].map((load) => ({ transport, qos, ...load })),
  ),
)

const peers = {
  mosquitto: { install: 'apt-get install mosquitto', guarantee: () => 'nothing is written to disk' },
  'nats-server': {
    install: howToInstall,
    guarantee: (qos: 0 | 1) => (qos === 1 ? 'in a file, synced every 2 minutes' : 'nothing is stored'),
  },
}
type PeerName = keyof typeof peers

type Server = {
  readonly name: 'floor' | 'inlet' | PeerName
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
    const installed = new Map<PeerName, string>()
    for (const [name, startPeer] of [
      ['mosquitto', startMosquitto],
      ['nats-server', startNats],
    ] as const) {
      const program = findProgram(name)
      if (program === undefined) continue
      installed.set(name, `${name} ${versionOf(program)}`)
      add(await startPeer(program, scratch))
    }

    const rounds = options.rounds ?? 3
    const [warmUpMs, measureMs] = options.isQuick ? [400, 700] : [700, 1_500]
    for (const { transport, qos, connections, window } of cases) {
      const name = `QoS ${qos}, ${transport}, ${connections} connections`
      // Thousands of connections take seconds to open.
      if (!isWanted(name, options) || (options.isQuick && connections > 50)) continue
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
        peers: Object.entries(peers).map(([name, { install, guarantee }]): Peer => {
          const title = installed.get(name as PeerName)
          return title === undefined
            ? { name, install }
            : { name: title, value: of(name as PeerName, what), guarantee: guarantee(qos) }
        }),
      })
      yield rate({ work: name, unit: 'messages/s', ...figure('messagesPerSecond'), goal: { ratio: goal } })
      yield cost({ work: `${name}: CPU a message`, unit: 'µs', ...figure('cpuMicros') })
    }
  },
}

/** Both print their version in their help, and mosquitto exits with 3. */
function versionOf(program: string): string {
  const { stdout } = spawnSync(program, [program.endsWith('mosquitto') ? '-h' : '--version'], { encoding: 'utf8' })
  return /(?:version |: v)(\S+)/.exec(stdout)?.[1] ?? 'of unknown version'
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

async function startMosquitto(program: string, scratch: Scratch): Promise<Server> {
  const [tcp, websocket] = [await freePort(), await freePort()]
  const path = join(scratch.path, 'mosquitto.conf')
  await writeFile(
    path,
    `listener ${tcp} 127.0.0.1\nlistener ${websocket} 127.0.0.1\nprotocol websockets\nallow_anonymous true\npersistence false\nlog_type error\nuser root\n`,
  )
  const child = start(0, [program, '-c', path], false)
  await answers(tcp)
  return peerServer('mosquitto', child, { tcp, websocket })
}

/** A session that is away subscribes with QoS 1: without one, JetStream would not keep the messages. */
async function startNats(program: string, scratch: Scratch): Promise<Server> {
  const [tcp, websocket] = [await freePort(), await freePort()]
  const path = join(scratch.path, 'nats.conf')
  await writeFile(
    path,
    `listen: 127.0.0.1:${await freePort()}
server_name: bench
jetstream { store_dir: ${JSON.stringify(await scratch.make('nats'))} }
log_file: ${JSON.stringify(join(scratch.path, 'nats.log'))}
mqtt { listen: 127.0.0.1:${tcp} }
websocket { listen: 127.0.0.1:${websocket}, no_tls: true }
`,
  )
  const child = start(0, [program, '-c', path], false)
  await answers(tcp)
  const subscriber = await connectAsync(`mqtt://127.0.0.1:${tcp}`, { clientId: 'away', clean: false })
  await subscriber.subscribeAsync('plant/#', { qos: 1 })
  await subscriber.endAsync()
  return peerServer('nats-server', child, { tcp, websocket })
}

function peerServer(name: PeerName, child: ChildProcess, ports: Server['ports']): Server {
  return {
    name,
    child,
    ports,
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
