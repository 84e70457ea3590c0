import { createHash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadSegment } from '#delivery/convert/build/build.ts'
import { checkIndex, rangeFor, registerKeys } from '#delivery/windows/key-index.ts'
import { closeLookup, findKeys } from '#delivery/windows/key-lookup.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import type { Definition } from '#model/definition.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { keyBytes } from '#records/key-hashes.ts'
import { RecordTable } from '#records/record-table.ts'
import { compileView } from '#views/compile.ts'
import { type Benchmark, cost, say } from './figures.ts'
import { best, coreSeconds, inScratch } from './measure.ts'

const windowMicros = 86_400 * 1e6
const columns: Definition['columns'] = [
  { name: 'id', type: 'VARCHAR', path: '$.id' },
  ...Array.from({ length: 9 }, (_, at) => ({ name: `n${at}`, type: 'BIGINT', path: `$.n${at}` })),
]

function linesOf(records: number): Buffer {
  const lines = Array.from({ length: records }, (_, at) => {
    const id = createHash('md5').update(String(at)).digest('hex')
    const numbers = Array.from({ length: 9 }, (_, column) => `"n${column}":${at * 31 + column}`)
    return `{"id":"${id}",${numbers.join(',')},"text":"${'x'.repeat(80)}"}\n`
  })
  return Buffer.from(lines.join(''))
}

type Index = { readonly path: string; readonly windowMicros: number }

/** Returns the CPU time from frames to Parquet: with an index, its keys are looked up and stored. */
async function convert(lines: Buffer, definition: Definition, directory: string, index?: Index): Promise<number> {
  await mkdir(directory)
  const view = { name: 'once', version: 1, compiled: await compileView(definition), secrets: {} }
  const segment = { id: 'segment', seq: 2, sealedAtMicros: 2e15 }
  const keysPath = join(directory, 'keys')
  return coreSeconds(async () => {
    const signal = new AbortController().signal
    const table = await RecordTable.open({
      ...{
        clock: systemClock,
        directory,
        memoryBytes: 256 * MiB,
        segmentSeq: 1,
        signal,
        spillBytesMax: 16 * GiB,
        viewTimeoutMs: 600_000,
      },
    })
    const fields = {
      layout: 'lines',
      receivedAtMicros: 1.7e15,
      recordCount: 0,
      envelope: encodeEnvelope({ protocol: 'http' }),
    } as const
    await loadSegment(table, [[{ ...fields, payload: lines, at: 0 }]])
    const window = index && { path: index.path, ...rangeFor(index, segment) }
    const filter = window && { path: keysPath, find: async (keys: Uint8Array) => findKeys(window, keys) }
    await table.writeAccepted(await table.extract([view]), 0, join(directory, 'view.parquet'), 1, filter)
    table.close()
    closeLookup()
    if (index !== undefined) registerKeys(index, segment, keysPath)
  })
}

/** Makes an index with so many keys of earlier segments. Returns how long each million took to store. */
async function fill(index: Index, keys: number, directory: string): Promise<number> {
  checkIndex(index)
  const file = join(directory, 'earlier')
  const step = 250_000
  let seconds = 0
  for (let at = 0; at < keys; at += step) {
    const sorted = Array.from({ length: step }, () => randomBytes(keyBytes)).toSorted(Buffer.compare)
    await writeFile(file, Buffer.concat(sorted))
    seconds += await coreSeconds(async () =>
      registerKeys(index, { id: `earlier ${at}`, seq: 1, sealedAtMicros: 2e15 - windowMicros + 1e6 + at * 1e4 }, file),
    )
  }
  return seconds / (keys / 1e6)
}

export const benchmark: Benchmark = {
  about:
    'A segment whose view has dedupe_within, from frames to Parquet and to the index of keys, in CPU time. The floor is the same view with dedupe_by alone.',
  async *measure({ isQuick, rounds = 3 }) {
    const records = isQuick ? 100_000 : 200_000
    const lines = linesOf(records)
    const plain: Definition = { columns, dedupe_by: ['id'] }
    for (const millions of isQuick ? [1] : [1, 5]) {
      const [floors, ours, fills, bytes, checks]: number[][] = [[], [], [], [], []]
      for (let round = 0; round < rounds; round += 1) {
        await inScratch(async (directory) => {
          const index = { path: join(directory, 'index.db'), windowMicros }
          say(`an index of ${millions} million keys`)
          fills?.push(await fill(index, millions * 1e6, directory))
          bytes?.push(statSync(index.path).size / (millions * 1e6))
          checks?.push((await coreSeconds(async () => checkIndex(index))) / millions)
          floors?.push(await convert(lines, plain, join(directory, 'plain')))
          ours?.push(await convert(lines, { ...plain, dedupe_within: '24h' }, join(directory, 'window'), index))
        })
      }
      const perRecord = 1e6 / records
      yield cost({
        work: `a segment of ${records / 1_000} k records beside ${millions} M keys`,
        unit: 'µs/record',
        ours: best(ours ?? []) * perRecord,
        floor: best(floors ?? []) * perRecord,
        parts: {
          'bytes/key': best(bytes ?? []),
          's to store 1 M keys': best(fills ?? []),
          's to check 1 M keys': best(checks ?? []),
        },
      })
    }
  },
}
