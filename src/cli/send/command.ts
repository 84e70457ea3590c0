/** `inlet send`: sends a file or a pipe to an endpoint, so that a repetition stores nothing twice. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { type CommittedReceipt, CommitWatch } from '#client/commit-watch.ts'
import { Delivery } from '#client/delivery.ts'
import { MiB } from '#lib/bytes.ts'
import { countNoun } from '#lib/count-noun.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'
import type { AckLevel } from '#model/ack-level.ts'
import { openRemote } from '../remote/remote.ts'
import { findEndpoint } from '../resources/find.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { Progress } from '../terminal/progress.ts'
import { readBatches } from './batches.ts'
import { Sending } from './sending.ts'

export type SendFlags = {
  readonly parallel: number
  readonly timeout: number
  readonly key?: string
  readonly ack?: AckLevel
  readonly again: boolean
  readonly json: boolean
}

type Input = { readonly name: string; readonly bytes: number | undefined; readonly chunks: Readable }

/** Records of a slow pipe wait that long for others. */
const lingerMs = 500

export async function send(this: CliContext, flags: SendFlags, endpoint: string, file = '-'): Promise<void> {
  const { key, again, parallel, timeout, ack } = flags
  if (again && key !== undefined) throw new UsageError('--again and --key exclude each other')
  const input = await openInput(file)
  const { url, apiKey, id } = await findTarget(this, endpoint)
  const target = { url, apiKey, endpoint: id, requestTimeoutMs: 60_000, fetch }
  const isTerminal = this.process.stderr.isTTY === true
  const progress = new SendingProgress(this, input)
  const delivery = new Delivery({
    ...target,
    compression: 'gzip',
    acknowledgement: ack === 'committed' ? undefined : ack,
    onRetry: (failure) => progress.note(messageOf(failure)),
  })
  // A pipe, also one with a name, has other records each time, even if they look the same. Those of a file are the same when it is sent again.
  const isRepeatable = key !== undefined || (input.bytes !== undefined && !again)
  const sending = new Sending(delivery, progress, {
    parallel,
    timeoutMs: timeout * 1000,
    salt: isRepeatable ? (key ?? '') : randomUUID(),
    // A pipe may be quiet for long.
    onFailure: (failure) => input.chunks.destroy(failure),
  })
  const stopping = new AbortController()
  const stop = () => {
    const reason = new UserError('interrupted')
    sending.stop(reason)
    stopping.abort(reason)
    input.chunks.destroy(reason)
  }
  const commits: CommittedReceipt[] = []
  process.once('SIGINT', stop)
  try {
    await sending.run(readBatches(input.chunks, { bytesMax: MiB, ...(isRepeatable ? {} : { lingerMs }) }))
    const { segments } = sending.summary
    const watch = new CommitWatch({ ...target, timeoutMs: timeout * 1000, signal: stopping.signal })
    for (const receipt of ack === 'committed' ? segments : []) {
      progress.committed(commits.length, segments.length)
      // Segments are delivered in their order.
      commits.push(await watch.committed(receipt))
    }
  } catch (error) {
    const hint = isRepeatable
      ? 'Send the same again to continue: what is stored is not stored twice, for 24 hours.'
      : 'Not all of the input was sent.'
    throw new UserError(`${messageOf(error)}\n${count(sending.stored)} stored. ${hint}`)
  } finally {
    process.off('SIGINT', stop)
    // A pipe that is still open would keep the process.
    input.chunks.destroy()
    progress.end(isTerminal)
  }
  const summary = { ...sending.summary, ...(ack === 'committed' ? { segments: commits } : {}) }
  this.process.stdout.write(flags.json ? `${JSON.stringify(summary)}\n` : describe(sending, commits))
}

function describe({ stored, replayed }: Sending, commits: readonly CommittedReceipt[]): string {
  if (stored === 0) return 'There are no records in the input.\n'
  const before = replayed === stored ? 'All of them' : `${replayed.toLocaleString('en-US')} of them`
  const earlier = replayed === 0 ? '' : ` ${before} had been stored before; use --again to store them once more.`
  const objects = new Set(commits.flatMap(({ keys }) => keys)).size
  const inBucket = commits.length === 0 ? '' : ` They are in the bucket, in ${countNoun(objects, 'object')}.`
  return `${count(stored)} stored.${earlier}${inBucket}\n`
}

function count(records: number): string {
  return `${records.toLocaleString('en-US')} ${records === 1 ? 'record' : 'records'}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Where to send, without asking control if the environment says it. */
async function findTarget(context: CliContext, endpoint: string) {
  const { client, apiKey, ingestUrl } = await openRemote(context)
  if (ingestUrl !== undefined) return { url: ingestUrl, apiKey, id: endpoint }
  const { id, ingest_host, ingest_url } = await findEndpoint(client, endpoint)
  // A host with a port is that of a node, which may speak TLS. A name of its own is served with TLS.
  return { url: ingest_host.includes(':') ? new URL(ingest_url).origin : `https://${ingest_host}`, apiKey, id }
}

async function openInput(file: string): Promise<Input> {
  if (file === '-') {
    if (process.stdin.isTTY) throw new UsageError('name a FILE, or pipe records into this command')
    return { name: 'standard input', bytes: undefined, chunks: process.stdin }
  }
  const stats = await stat(file).catch((error: unknown) => {
    const code = errorCode(error)
    throw new UserError(code === 'ENOENT' ? `there is no file ${file}` : `${file} cannot be read (${code ?? messageOf(error)})`)
  })
  if (stats.isDirectory()) throw new UserError(`${file} is a directory: name a file of NDJSON`)
  return {
    name: file,
    bytes: stats.isFile() ? stats.size : undefined,
    chunks: createReadStream(file, { highWaterMark: 256 * 1024 }),
  }
}

/** On a terminal, a bar for a file and a count for a pipe. */
class SendingProgress {
  readonly #context: CliContext
  readonly #input: Input
  readonly #bar: Progress | undefined
  #note = ''

  constructor(context: CliContext, input: Input) {
    this.#context = context
    this.#input = input
    const { stderr } = context.process
    if (stderr.isTTY !== true || input.bytes === undefined) return
    this.#bar = new Progress({ output: stderr, label: 'sending', total: input.bytes })
  }

  /** Says once what a repetition waits for. */
  note(reason: string): void {
    if (reason === this.#note) return
    this.#note = reason
    this.#context.process.stderr.write(`${this.#context.process.stderr.isTTY === true ? '\r\u001b[K' : ''}waiting: ${reason}\n`)
  }

  advance(end: number, records: number): void {
    this.#note = ''
    if (this.#bar !== undefined) this.#bar.show(Math.min(end, this.#input.bytes ?? end), count(records))
    else if (this.#context.process.stderr.isTTY === true) this.#context.process.stderr.write(`\r  ${count(records)}\u001b[K`)
  }

  committed(done: number, segments: number): void {
    const { stderr } = this.#context.process
    if (stderr.isTTY === true) stderr.write(`\r  committed: ${done} of ${countNoun(segments, 'segment')}\u001b[K`)
  }

  end(isTerminal: boolean): void {
    if (isTerminal) this.#context.process.stderr.write('\r\u001b[K')
  }
}
