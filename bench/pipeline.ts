/**
 * The whole service on this machine: HTTP in, typed Parquet in the bucket, one endpoint, one view of ten columns beside raw Parquet.
 *
 *   blast   as fast as acknowledgements come; counted until the last commit
 *   paced   100 MB/s, the goal; does delivery fall behind?
 *
 * The floor is what bare DuckDB needs for the conversion alone, shared out over all cores: no HTTP, no log, no fsync, no load
 * generator, which all run on the same cores here. `node bench/pipeline.ts [megabytes] [seconds paced]`.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { availableParallelism } from 'node:os'
import { Installation } from '../test/support/installation.ts'
import { generatedEvents } from './events.ts'
import { floor } from './extraction-floor.ts'
import { inScratch } from './measure.ts'

const megabytes = Number(process.argv[2] ?? 1500)
const requestBytes = 1_100_000
const parallel = 6
const pacedMegabytesPerSecond = 100
const pacedSeconds = Number(process.argv[3] ?? 15)

const workload = generatedEvents(requestBytes * 16)
const bodies = cut(workload.lines)
const recordsPerByte = workload.records / workload.lines.length

console.log(
  `whole service, ${availableParallelism()} cores, ${Math.round(1 / recordsPerByte)} B an event, ${Math.round(requestBytes * recordsPerByte)} events a request`,
)

const floorBytes = generatedEvents(64e6)
const bare = await inScratch((directory) => floor(floorBytes, directory))
const floorSpeed = (floorBytes.lines.length / 1e6 / (bare.load + bare.extract + bare.raw)) * availableParallelism()
console.log(`  floor: bare DuckDB, loading and both files, on all cores  ${floorSpeed.toFixed(0)} MB/s`)

await using installation = await Installation.create({ environment: { INLET_LOG_LEVEL: 'error' } })
await installation.start('start')
const { id } = await installation.endpoint({
  bucket: 'bench',
  view: { name: 'bench', definition: workload.definition },
  segment_max_age_seconds: 5,
  segment_bytes: 64 * 1024 * 1024,
  output_formats: ['parquet_views', 'parquet'],
})
const agent = new Agent({ keepAlive: true, maxSockets: parallel })

const blast = await measure(megabytes * 1e6, undefined)
report('blast', blast)
console.log(`         ratio to the floor ${(blast.speed / floorSpeed).toFixed(2)}`)
const paced = await measure(pacedMegabytesPerSecond * 1e6 * pacedSeconds, pacedMegabytesPerSecond * 1e6)
report('paced', paced)
console.log(
  `         goal: ${pacedMegabytesPerSecond} MB/s sustained: ${paced.behindSeconds < 10 && paced.acknowledged > pacedMegabytesPerSecond * 0.97 ? 'reached' : 'missed'}`,
)
for (const name of ['ingest', 'delivery', 'control']) console.log(`  peak memory of ${name.padEnd(9)} ${peakMegabytes(name)} MB`)
agent.destroy()

type Outcome = {
  readonly bytes: number
  /** MB/s until the last acknowledgement, and until the last commit. */
  readonly acknowledged: number
  readonly speed: number
  /** From the last acknowledgement to the last commit. */
  readonly behindSeconds: number
}

async function measure(total: number, bytesPerSecond: number | undefined): Promise<Outcome> {
  const seqs = new Set<number>()
  const started = performance.now()
  let sent = 0
  const worker = async () => {
    while (sent < total) {
      const body = bodies[Math.floor(sent / requestBytes) % bodies.length] as Buffer
      sent += body.length
      if (bytesPerSecond !== undefined) {
        const dueMs = (sent / bytesPerSecond) * 1000 - (performance.now() - started)
        if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs))
      }
      seqs.add(await post(body))
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  const acknowledgedSeconds = (performance.now() - started) / 1000
  await installation.committed(id, seqs, 300_000)
  const seconds = (performance.now() - started) / 1000
  return {
    bytes: sent,
    acknowledged: sent / 1e6 / acknowledgedSeconds,
    speed: sent / 1e6 / seconds,
    behindSeconds: seconds - acknowledgedSeconds,
  }
}

function report(what: string, { bytes, acknowledged, speed, behindSeconds }: Outcome): void {
  console.log(
    `  ${what}  ${(bytes / 1e6).toFixed(0)} MB: acknowledged at ${acknowledged.toFixed(0)} MB/s, committed at ${speed.toFixed(0)} MB/s, the last commit ${behindSeconds.toFixed(1)} s after the last acknowledgement`,
  )
}

/** The seq of the segment that took it. Waits where it is asked to. */
async function post(body: Buffer): Promise<number> {
  for (;;) {
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = request(
        `${installation.ingestUrl}/v1/ingest?endpoint=${id}`,
        {
          method: 'POST',
          agent,
          headers: { 'x-api-key': installation.apiKey, 'content-type': 'application/x-ndjson', 'content-length': body.length },
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

/** Whole lines, about `requestBytes` at a time. */
function cut(lines: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < lines.length; ) {
    const end = lines.indexOf(10, Math.min(at + requestBytes, lines.length - 1)) + 1
    parts.push(lines.subarray(at, end))
    at = end
  }
  return parts
}

/** Of a child of the supervisor, where the system tells. */
function peakMegabytes(name: string): string {
  try {
    const pid = execFileSync('pgrep', ['-P', String(installation.pid('start')), '-f', `main.ts ${name}$`])
      .toString()
      .trim()
    const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return (Number(kilobytes) / 1024).toFixed(0)
  } catch {
    return 'unknown'
  }
}
