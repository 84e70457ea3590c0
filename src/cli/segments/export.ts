/**
 * `inlet segments export`: the records of segments as lines of JSON.
 *
 * Law: what is intact is printed, and what is not is reported. The exit code is 1 if anything is missing from the output. A file is durable
 * when the command ends, so that its segments may be discarded then.
 */
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { countNoun } from '#lib/count-noun.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { scanSegment } from '#log/local/read/segment-scan.ts'
import { SegmentError } from '#log/segment-error.ts'
import type { CliContext } from '../terminal/context.ts'
import { Progress } from '../terminal/progress.ts'
import { selectSegments } from './names.ts'
import { type NodeSegment, readNodeSegments } from './node-segments.ts'
import { writeRecords } from './records.ts'

export type ExportFlags = { readonly output: string }

export async function exportSegments(this: CliContext, { output }: ExportFlags, ...names: readonly string[]): Promise<void> {
  const { stdout, stderr } = this.process
  const logger = createLogger('segments', 'silent')
  const { segments } = await readNodeSegments(await this.readConfig(), { clock: this.clock, logger })
  const selected = withoutOriginals(selectSegments(segments, names))
  const to = output === '-' ? stdout : await create(output)
  // An error of a file is thrown when it is made durable.
  if (to !== stdout) to.on('error', () => undefined)
  const total = selected.reduce((sum, { bytes }) => sum + bytes, 0)
  const progress = new Progress({ output: stderr, label: 'exported', total })
  const isShown = 'isTTY' in stderr && stderr.isTTY === true
  const done = { segments: 0, records: 0, bytes: 0 }
  const problems: string[] = []
  for (const segment of selected) {
    const problem = await exportSegment(segment, to, (records, bytes) => {
      done.records += records
      done.bytes += bytes
      if (isShown) progress.show(Math.min(done.bytes, total - 1), `${done.records} records`)
    })
    if (problem === undefined) done.segments += 1
    else problems.push(problem)
  }
  if (isShown) progress.show(total, `${done.records} records`)
  if (output !== '-') await makeDurable(to, output)
  stderr.write(`${done.records} records of ${countNoun(selected.length, 'segment')}, ${done.segments} of them complete\n`)
  for (const problem of problems) stderr.write(`  ${problem}\n`)
  if (problems.length > 0) this.process.exitCode = 1
}

/** Leaves out the originals of salvaged segments: every intact record of theirs is in the salvaged segment of the same name. */
function withoutOriginals(segments: readonly NodeSegment[]): readonly NodeSegment[] {
  const salvaged = new Set(segments.filter(({ state }) => state !== 'quarantined').map(({ name }) => name))
  return segments.filter(({ name, state }) => state !== 'quarantined' || !salvaged.has(name))
}

/** Returns what is missing from the output. */
async function exportSegment(
  { name, path }: NodeSegment,
  to: Writable,
  onWritten: (records: number, bytes: number) => void,
): Promise<string | undefined> {
  try {
    const scan = await scanSegment(systemFiles, path)
    try {
      await writeRecords(scan, { fields: { segment: name }, onWritten }, to)
    } finally {
      await scan.close()
    }
    return undefined
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return `${name}: delivered meanwhile, or renamed; list again with: inlet segments`
    return error instanceof SegmentError ? error.message : `${name}: ${errorMessage(error)}`
  }
}

async function create(path: string): Promise<Writable> {
  const stream = createWriteStream(path, { flags: 'wx' })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  stream.once('open', () => resolve()).once('error', reject)
  try {
    await promise
  } catch (error) {
    const reason = errorCode(error) === 'EEXIST' ? 'exists already' : errorMessage(error)
    throw new UserError(`--output ${path}: ${reason}`)
  }
  return stream
}

async function makeDurable(stream: Writable, path: string): Promise<void> {
  try {
    stream.end()
    await finished(stream)
  } catch (error) {
    throw new UserError(`--output ${path}: ${errorMessage(error)}`)
  }
  const file = await open(path)
  await file.sync()
  await file.close()
}
