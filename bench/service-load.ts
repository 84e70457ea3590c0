/** Sends records to an installation over HTTP, waits for their commits, and measures its processes where the system allows it. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { Installation } from '../test/support/installation.ts'
import { processTree } from './process-memory.ts'

const requestBytes = 1_100_000
const parallel = 6
/** Clock ticks per second in `/proc/<pid>/stat`. Linux uses this value on all platforms of Node. */
const ticksPerSecond = 100

export type Outcome = {
  readonly bytes: number
  /** MB/s until the last acknowledgement, and until the last commit. */
  readonly acknowledged: number
  readonly speed: number
  /** From the last acknowledgement to the last commit. */
  readonly behindSeconds: number
}

export type LoadOptions = {
  readonly installation: Installation
  readonly endpointId: string
  /** Lines to send repeatedly. */
  readonly lines: Buffer
}

export class Load {
  readonly #options: LoadOptions
  readonly #bodies: readonly Buffer[]
  readonly #agent = new Agent({ keepAlive: true, maxSockets: parallel })

  constructor(options: LoadOptions) {
    this.#options = options
    this.#bodies = cut(options.lines)
  }

  /** Sends that many bytes, as fast as possible or at a given rate, and waits for the last commit. */
  async send(total: number, bytesPerSecond: number | undefined): Promise<Outcome> {
    const { installation, endpointId } = this.#options
    const seqs = new Set<number>()
    const started = performance.now()
    let sent = 0
    const worker = async () => {
      while (sent < total) {
        const body = this.#bodies[Math.floor(sent / requestBytes) % this.#bodies.length] as Buffer
        sent += body.length
        if (bytesPerSecond !== undefined) {
          const dueMs = (sent / bytesPerSecond) * 1000 - (performance.now() - started)
          if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs))
        }
        seqs.add(await this.#post(body))
      }
    }
    await Promise.all(Array.from({ length: parallel }, worker))
    const acknowledgedSeconds = (performance.now() - started) / 1000
    await installation.committed(endpointId, seqs, 600_000)
    const seconds = (performance.now() - started) / 1000
    return {
      bytes: sent,
      acknowledged: sent / 1e6 / acknowledgedSeconds,
      speed: sent / 1e6 / seconds,
      behindSeconds: seconds - acknowledgedSeconds,
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Returns the seq of the segment that stores the batch. Waits if the server asks for it. */
  async #post(body: Buffer): Promise<number> {
    const { installation, endpointId } = this.#options
    for (;;) {
      const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
        const outgoing = request(
          `${installation.ingestUrl}/v1/ingest?endpoint=${endpointId}`,
          {
            method: 'POST',
            agent: this.#agent,
            headers: {
              'x-api-key': installation.apiKey,
              'content-type': 'application/x-ndjson',
              'content-length': body.length,
            },
          },
          (response) => {
            let text = ''
            response.on('data', (chunk) => (text += chunk))
            response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
          },
        )
        outgoing.on('error', reject)
        outgoing.end(body)
      })
      if (status === 202) return JSON.parse(text).segment_seq
      if (status !== 503) throw new Error(`${status} ${text}`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

/** Returns the peak memory of a child of the supervisor in MB, without its workers; NaN if the system does not report it. */
export function peakMegabytes(installation: Installation, name: string): number {
  try {
    const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${childPid(installation, name)}/status`, 'utf8'))?.[1]
    return (Number(kilobytes) * 1024) / 1e6
  } catch {
    return Number.NaN
  }
}

/** Returns the CPU seconds of a child of the supervisor and of its workers, of those too that have ended; NaN if the system does not report them. */
export function cpuSeconds(installation: Installation, name: string): number {
  try {
    return cpuSecondsOf(childPid(installation, name))
  } catch {
    return Number.NaN
  }
}

/** The same of any process. Throws if the system does not report them. */
export function cpuSecondsOf(root: number): number {
  return processTree(root).reduce((sum, pid) => sum + ticksOf(pid) / ticksPerSecond, 0)
}

/** Returns what a process and its children that have ended used. */
function ticksOf(pid: number): number {
  // proc(5): fields are counted after the name, which may contain spaces: the four times are fields 14 to 17 of the line.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
}

function childPid(installation: Installation, name: string): number {
  return Number(execFileSync('pgrep', ['-P', String(installation.pid('start')), '-f', `main.ts ${name}$`]))
}

/** Splits into batches of complete lines, about `requestBytes` each. */
function cut(lines: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf(10, Math.min(at + requestBytes, lines.length - 1)) + 1
    parts.push(lines.subarray(at, end))
    at = end
  }
  return parts
}
