/**
 * Indexes of keys, for views with a window: a file each, on the simulated disk, which is replaced as a whole.
 *
 * Law: what a call has changed is on the disk when it returns, as with SQLite.
 */
import { IndexDamaged, type IndexedView, type IndexState } from '#delivery/windows/key-index.ts'
import type { KeyIndexes } from '#delivery/windows/thread.ts'
import { type Files, writeDurably } from '#lib/files.ts'
import { keyBytes } from '#records/key-hashes.ts'
import { digest } from './bucket.ts'

type Segment = { readonly number: number; readonly id: string; readonly at: number; readonly keys: readonly string[] }
type Index = Omit<IndexState, 'bytes' | 'keys'> & { readonly windowMicros: number; readonly segments: readonly Segment[] }

export function simulatedIndexes(files: Files): KeyIndexes {
  const write = (path: string, index: Index) => {
    const text = JSON.stringify(index)
    return writeDurably(files, path, Buffer.from(`${digest(Buffer.from(text))}\n${text}`))
  }
  const find = async (path: string): Promise<Index | undefined> => {
    const [sum, text = ''] = (await files.read(path))?.toString().split('\n') ?? []
    return sum === digest(Buffer.from(text)) ? JSON.parse(text) : undefined
  }
  const read = async (path: string): Promise<Index> => {
    const index = await find(path)
    if (index === undefined) throw new IndexDamaged('it is not as it was written')
    return index
  }
  const change = async ({ path }: Pick<IndexedView, 'path'>, by: (index: Index) => Partial<Index>): Promise<IndexState> => {
    const index = await read(path)
    const changed = { ...index, ...by(index) }
    await write(path, changed)
    return stateOf(changed)
  }
  return {
    async check({ path, windowMicros }) {
      const isNew = (await files.bytes(path)) === undefined
      if (!isNew && (await find(path))?.windowMicros === windowMicros) return { found: 'intact', reason: '' }
      await write(path, { windowMicros, newestMicros: 0, sinceMicros: null, last: null, segments: [] })
      return { found: isNew ? 'new' : 'damaged', reason: 'simulated' }
    },
    state: async ({ path }) => stateOf(await read(path)),
    async range({ path, windowMicros }, { id, sealedAtMicros }) {
      const { segments, newestMicros } = await read(path)
      const after = Math.max(sealedAtMicros, newestMicros) - windowMicros
      const from = segments.find(({ at }) => at > after)?.number ?? Number.MAX_SAFE_INTEGER
      return { slices: [], from, own: segments.find((segment) => segment.id === id)?.number ?? -1 }
    },
    async register(index, { id, seq, sealedAtMicros }, keysPath) {
      const keys = keysPath === null ? [] : keysIn((await files.read(keysPath)) ?? Buffer.alloc(0))
      return change(index, ({ segments, newestMicros, last }) => {
        const at = Math.max(sealedAtMicros, newestMicros)
        const number = (segments.at(-1)?.number ?? 0) + 1
        const others = segments.filter((segment) => segment.id !== id && segment.at > at - 2 * index.windowMicros)
        const added = keysPath === null ? [] : [{ number, id, at, keys }]
        const known = { id, seq: Math.max(seq, last?.seq ?? seq), isCommitted: false }
        return { newestMicros: at, last: known, segments: [...others, ...added] }
      })
    },
    async confirm(index, id) {
      await change(index, ({ last }) => (last?.id === id ? { last: { ...last, isCommitted: true } } : {}))
    },
    async forget(index, id) {
      await change(index, ({ last, segments }) =>
        last?.id !== id || last.isCommitted
          ? {}
          : { last: { ...last, isCommitted: true }, segments: segments.filter((segment) => segment.id !== id) },
      )
    },
    complete: (index, sinceMicros) => change(index, () => ({ sinceMicros })),
    async registered({ path }, ids) {
      const known = new Set((await read(path)).segments.map(({ id }) => id))
      return ids.filter((id) => known.has(id))
    },
    async find({ path, from, own }, keys) {
      const { segments } = await read(path)
      const known = new Set(segments.flatMap(({ number, keys }) => (number >= from && number !== own ? keys : [])))
      return Uint8Array.from(keysIn(keys), (key) => (known.has(key) ? 1 : 0))
    },
    // Nobody calls it: an index is far below the bound.
    shorten: (index) => change(index, () => ({})),
  }
}

function stateOf({ segments, newestMicros, sinceMicros, last }: Index): IndexState {
  return { bytes: 0, keys: segments.reduce((sum, { keys }) => sum + keys.length, 0), newestMicros, sinceMicros, last }
}

function keysIn(bytes: Uint8Array): readonly string[] {
  const hex = Buffer.from(bytes).toString('hex')
  return Array.from({ length: bytes.length / keyBytes }, (_, at) => hex.slice(at * 2 * keyBytes, (at + 1) * 2 * keyBytes))
}
