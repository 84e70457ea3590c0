/**
 * Damage to every kind of file that Inlet writes: it is repaired, refused with a reason, or counted and shown. It is never silent, and harms no
 * other file.
 */
import { randomInt } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seededRandom } from '#lib/random.ts'
import { runs } from '../support/thorough.ts'
import { damages, inflict } from './damages.ts'
import { OtherHarmed, Silent } from './judges.ts'
import { type Kind, kinds, kindsOf } from './kinds.ts'
import { copyData, listFiles, type Populated, populate } from './populated.ts'

const seed = Number(process.env['INLET_TEST_SEED'] ?? randomInt(2 ** 31))
/** Files of each kind to which each damage is done. */
const filesOfKind = runs(1, 3)

let populated: Populated & AsyncDisposable
let files: readonly string[] = []
let scratch = ''

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'inlet-damage-'))
  populated = await populate()
  files = await listFiles(populated.directory)
}, 120_000)
afterAll(async () => {
  await rm(scratch, { recursive: true, force: true })
  // Undefined if populating failed.
  await (populated as AsyncDisposable | undefined)?.[Symbol.asyncDispose]()
})

function randomOf(text: string): () => number {
  return seededRandom([...`${seed} ${text}`].reduce((sum, char) => Math.imul(sum ^ char.charCodeAt(0), 0x5bd1e995) >>> 0, 17))
    .fraction
}

test('every file that Inlet writes is of one kind, and every kind is there or says why not', () => {
  expect(files.filter((path) => kindsOf(path).length !== 1)).toEqual([])
  const missing = kinds.filter(({ pattern, absent }) => absent === undefined && !files.some((path) => pattern.test(path)))
  expect(missing.map(({ name }) => name)).toEqual([])
})

describe.each(kinds.filter(({ absent }) => absent === undefined))(`$name (seed ${seed})`, (kind) => {
  test.concurrent.each(damages)('%s', async (damage) => {
    const reason = kind.accepted?.[damage]
    for (const path of choose(kind)) {
      const data = await mkdtemp(join(scratch, 'copy-'))
      // Only readers of objects and of the database look into the buckets.
      copyData(populated.directory, data, { withBuckets: /^(buckets\/|inlet\.db)/.test(path) })
      try {
        const others = files.filter((other) => other !== path && kind.pattern.test(other) && !kind.isSingle)
        const other = others.length === 0 ? undefined : join(populated.directory, others[0] ?? '')
        if (!(await inflict(damage, join(data, path), other, randomOf(`${path.replaceAll(/[^/]+\//g, '')} ${damage}`)))) continue
        const verdict = await kind.judge({ populated, data, path }).catch((error: unknown) => {
          const isAccepted = reason !== undefined && error instanceof Silent && !(error instanceof OtherHarmed)
          if (isAccepted) return { end: 'shown' as const }
          throw new Error(`${path}: ${String(error)}`, { cause: error })
        })
        expect(['no harm', 'repaired', 'refused', 'shown']).toContain(verdict.end)
      } finally {
        rmSync(data, { recursive: true })
      }
    }
  })
})

function choose({ pattern }: Kind): readonly string[] {
  // The commit of the last segment waits in the outbox, so its files are not verified yet.
  const found = files.filter((path) => pattern.test(path) && !(path.startsWith('buckets/') && path.includes('-000000000003.')))
  const start = Math.floor(randomOf(pattern.source)() * found.length)
  return [...found.slice(start), ...found.slice(0, start)].slice(0, filesOfKind)
}
