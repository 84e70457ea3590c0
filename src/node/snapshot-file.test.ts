import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { isThorough } from '../../test/support/thorough.ts'
import { SnapshotFile } from './snapshot-file.ts'
import { printUpdate, type SnapshotUpdate } from './snapshot-sections.ts'

const anUpdate = (epoch: number, removed: readonly string[] = []): SnapshotUpdate => ({
  sections: [{ kind: 'keys', name: 'keys/3f', version: `v${epoch}`, keys: [], revoked_keys: [], expiring_keys: [] }],
  end: { kind: 'end', epoch, region: 'loc', removed: [...removed] },
})

async function aFile() {
  const directory = await mkdtemp(join(tmpdir(), 'inlet-snapshot-'))
  const path = join(directory, 'snapshot.ndjson')
  const file = new SnapshotFile({ path, files: systemFiles, logger: createLogger('ingest', 'silent') })
  return { path, file, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

test('what was stored is loaded, and a torn update at the end is left out', async () => {
  await using at = await aFile()
  const [first, second] = [anUpdate(1), anUpdate(2, ['views/00'])]
  await at.file.store(printUpdate(first), () => first)
  await at.file.store(printUpdate(second), () => second)
  await at.file.close()
  expect(await at.file.load()).toEqual([first, second])
  const bytes = await readFile(at.path)
  for (let cut = 1; cut < 30; cut += 1) {
    await writeFile(at.path, bytes.subarray(0, bytes.length - cut))
    expect(await at.file.load(), `cut by ${cut}`).toEqual([first])
  }
})

test('no flipped bit is ever applied', async () => {
  await using at = await aFile()
  const [first, second] = [anUpdate(1), anUpdate(2)]
  await at.file.store(printUpdate(first), () => first)
  await at.file.store(printUpdate(second), () => second)
  await at.file.close()
  const bytes = await readFile(at.path)
  // Seven and eight have no common factor: every bit of a byte has its turn.
  for (let place = 0; place < bytes.length * 8; place += isThorough ? 1 : 7) {
    const flipped = Buffer.from(bytes)
    flipped[place >> 3] = (flipped[place >> 3] ?? 0) ^ (1 << (place & 7))
    await writeFile(at.path, flipped)
    expect([[], [first], [first, second]], `bit ${place}`).toContainEqual(await at.file.load())
  }
})

test('a file of an earlier version, without checksums, is loaded', async () => {
  await using at = await aFile()
  await writeFile(at.path, Buffer.concat([printUpdate(anUpdate(1)), printUpdate(anUpdate(2))]))
  expect(await at.file.load()).toEqual([anUpdate(1), anUpdate(2)])
})
