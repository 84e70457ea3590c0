/**
 * The files of the outbox: `<endpoint id>.<commit id>.json`. The first line is the commit, the second line the checksum of the first.
 *
 * Owns: names, content, and finding damage. Does not own: when an entry is written, sent or removed (outbox.ts).
 * Law: the name alone says which segment an entry belongs to. A file that cannot be read therefore still has its place in its queue.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type Files, removeLeftovers, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { SegmentCommit } from '#model/commit.ts'

/** Identifies the segment of an entry. */
export type OutboxEntry = {
  /** The id of its commit. */
  readonly id: string
  readonly endpoint_id: string
  readonly log: string
  readonly seq: number
}

const namePattern = /^([A-Za-z0-9_-]+)\.(.+-([a-z0-9]{10})-(\d{12,15}))\.json$/

export class OutboxFiles {
  readonly #directory: string
  readonly #files: Files

  constructor({ directory, files }: { readonly directory: string; readonly files: Files }) {
    this.#directory = directory
    this.#files = files
  }

  /** Creates the directory, and removes what a crash left of a write that was never acknowledged. */
  async prepare(): Promise<void> {
    await this.#files.makeDirectory(this.#directory)
    await removeLeftovers(this.#files, this.#directory, () => true)
  }

  /** Returns all entries, by seq. */
  async list(): Promise<readonly OutboxEntry[]> {
    const names = await this.#files.list(this.#directory)
    const entries = names.flatMap(({ name }) => parseName(name) ?? [])
    return entries.sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : 1))
  }

  /** The entry is durable when this resolves. */
  write(entry: OutboxEntry, commit: SegmentCommit): Promise<void> {
    const text = JSON.stringify(commit)
    const bytes = Buffer.from(`${text}\n${JSON.stringify({ sha256: checksum(text) })}\n`)
    return writeDurably(this.#files, this.#path(entry), bytes)
  }

  /** Returns the commit and the size of its file, or a text that says why the entry is damaged. Throws if the disk does. */
  async read(entry: OutboxEntry): Promise<{ readonly commit: SegmentCommit; readonly bytes: number } | string> {
    const bytes = await this.#files.read(this.#path(entry))
    if (bytes === undefined) return 'the file is missing'
    const [text = '', sum = ''] = Buffer.from(bytes).toString('utf8').split('\n')
    if (sum !== JSON.stringify({ sha256: checksum(text) })) return 'the checksum does not match'
    const { data: commit } = SegmentCommit.safeParse(parseJson(text))
    if (commit === undefined) return 'it does not hold a commit'
    if (commit.id !== entry.id || commit.endpoint_id !== entry.endpoint_id) return 'it holds the commit of another segment'
    return { commit, bytes: bytes.byteLength }
  }

  /** Renames a damaged entry, so that it is kept and not sent. Returns the new path. */
  async setAside(entry: OutboxEntry): Promise<string> {
    const path = this.#path(entry)
    if ((await this.#files.bytes(path)) !== undefined) await this.#files.rename(path, `${path}.damaged`)
    return `${path}.damaged`
  }

  remove(entry: OutboxEntry): Promise<void> {
    return this.#files.remove(this.#path(entry))
  }

  #path({ endpoint_id, id }: OutboxEntry): string {
    return join(this.#directory, `${endpoint_id}.${id}.json`)
  }
}

function parseName(name: string): OutboxEntry | undefined {
  const [, endpoint_id, id, log, seq] = namePattern.exec(name) ?? []
  if (endpoint_id === undefined || id === undefined || log === undefined || seq === undefined) return undefined
  return { id, endpoint_id, log, seq: Number(seq) }
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
