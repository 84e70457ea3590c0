import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { must } from '#lib/assert.ts'
import { residentBytesOf } from '#lib/resident-memory.ts'
import { writeCertificate } from '../test/support/certificates.ts'
import { type Benchmark, cost, isWanted, say } from './figures.ts'
import { Scratch } from './measure.ts'
import type { IdleJob } from './mqtt-idle-clients.ts'
import { ask, next, start, stop } from './rig.ts'

const transports = ['tcp', 'websocket', 'tls', 'secure-websocket'] as const
export type Transport = (typeof transports)[number]

/** KiB for each connection. With TLS, Node itself takes more than we would like, so the goal is what we add. */
const plainMax = 10
const ratioMin = 0.8
/** Files that a process has open beside connections. */
const filesReserved = 500
/** Opened and closed before the measurement, so that code and caches do not count. */
const warmUp = 500
const settleMs = 3_000

type Measured = { readonly standing: number; readonly collected: number }

export const benchmark: Benchmark = {
  about:
    'Resident memory of the server for each idle MQTT connection, three seconds after the last CONNACK, and as a part after a garbage collection. 20 000 connections, or as many as the limit of open files allows (`ulimit -Hn`). The floor is a bare server of Node (net, tls, http with ws) that answers CONNECT and keeps the connection. Memory of the kernel is not counted.',
  async *measure(options) {
    const filesMax = Number(execFileSync('sh', ['-c', 'ulimit -Hn']).toString().trim().replace('unlimited', 'Infinity'))
    const connections = Math.min(options.isQuick ? 10_000 : 20_000, filesMax - filesReserved)
    await using scratch = await Scratch.create()
    const certificate = { certificateFile: join(scratch.path, 'certificate.pem'), keyFile: join(scratch.path, 'key.pem') }
    await writeCertificate(certificate, { name: '127.0.0.1', fromMs: Date.now() - 1e6, toMs: Date.now() + 1e9 })
    for (const transport of transports) {
      const work = `idle connection, ${transport}, ${connections} of them`
      if (!isWanted(work, options)) continue
      say(work)
      const floor = await measure('floor', transport, connections, scratch.path)
      const inlet = await measure('inlet', transport, connections, scratch.path)
      yield cost({
        work,
        unit: 'KiB',
        ours: inlet.standing,
        floor: floor.standing,
        goal: transport === 'tcp' || transport === 'websocket' ? { ours: plainMax } : { ratio: ratioMin },
        parts: { 'after a collection': inlet.collected, 'of the floor': floor.collected },
      })
    }
  },
}

async function measure(kind: 'floor' | 'inlet', transport: Transport, connections: number, scratch: string): Promise<Measured> {
  const here = import.meta.dirname
  const server = start(0, [process.execPath, join(here, 'mqtt-idle-servers.ts'), kind, transport, scratch])
  const clients = start(1, [process.execPath, join(here, 'mqtt-idle-clients.ts')])
  const { ready } = (await next(server)) as { ready: string }
  const run = async (job: IdleJob) => {
    clients.send(job)
    await next(clients)
  }
  const resident = () => residentBytesOf([must(server.pid, 'a process')]) / 1024
  await run({ transport, address: ready, connections: warmUp })
  await run('close')
  await setTimeout(settleMs)
  await ask(server, 'clean')
  const base = resident()
  await run({ transport, address: ready, connections })
  await setTimeout(settleMs)
  const standing = (resident() - base) / connections
  await ask(server, 'clean')
  const collected = (resident() - base) / connections
  const exited = once(clients, 'exit')
  clients.kill('SIGKILL')
  await exited
  await stop(server)
  return { standing, collected }
}
