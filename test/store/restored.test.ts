/** Restored and accepted databases report their generation, which nodes follow, and commits that may be missing. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { beginGeneration, currentPosition, inNewEpoch } from '#store/cluster/epoch.ts'
import {
  clearMissingCommits,
  findMissing,
  listAutomaticCommits,
  listMissingCommits,
  listReadableCommits,
  noteMissingCommits,
} from '#store/commits/missing-commits.ts'
import { applyRestore, writeRestored } from '#store/commits/restored.ts'
import { transact } from '#store/store.ts'
import { describeStores, iso, t0 } from './fixtures.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-restored-'))
})
afterEach(() => rm(directory, { recursive: true }))

describeStores('a restored database', (test) => {
  test('begins a generation once, and may lack commits of every region since the backup', async ({ store }) => {
    const path = join(directory, 'restored.json')
    const before = await currentPosition(store.db)
    expect(before).toMatchObject({ generation: 0, database: expect.stringMatching(/^[\da-f-]{36}$/) })
    expect(await applyRestore(store, systemFiles, path, t0)).toBe(false)
    await writeRestored(systemFiles, path, { begun_at: iso(t0 - 5_000) }, t0)
    expect(await applyRestore(store, systemFiles, path, t0)).toBe(true)
    const restored = await currentPosition(store.db)
    expect(restored).toEqual({ ...before, generation: t0, epoch: before.epoch + 1, version: expect.any(String) })
    const missing = await listMissingCommits(store.db)
    for (const region of ['loc', 'fra']) expect(findMissing(missing, region)).toEqual({ since: t0 - 5_000, isAutomatic: false })
    // The start was interrupted before the file was removed.
    await clearMissingCommits(store.db, await listMissingCommits(store.db))
    await writeFile(path, JSON.stringify({ generation: t0, begun_at: iso(t0 - 5_000), before: 0 }))
    expect(await applyRestore(store, systemFiles, path, t0 + 1)).toBe(true)
    expect(await currentPosition(store.db)).toEqual(restored)
    expect(await listMissingCommits(store.db)).toEqual([])
    await writeFile(path, '{')
    await expect(applyRestore(store, systemFiles, path, t0)).rejects.toThrow(
      'is damaged: remove it, and run inlet database accept',
    )
  })

  test('that was accepted while the clock was ahead begins a generation all the same', async ({ store }) => {
    await inNewEpoch(store, (db) => beginGeneration(db, t0 + 60_000))
    const path = join(directory, 'restored.json')
    await writeRestored(systemFiles, path, { begun_at: iso(t0 - 5_000) }, t0)
    expect(await applyRestore(store, systemFiles, path, t0)).toBe(true)
    expect(await currentPosition(store.db)).toMatchObject({ generation: t0 + 60_001 })
    expect(findMissing(await listMissingCommits(store.db), 'loc')).toEqual({ since: t0 - 5_000, isAutomatic: false })
  })

  test('what is noted while commits are rebuilt stays noted', async ({ store }) => {
    const note = (region: string, since: number, now: number) =>
      transact(store, (db) => noteMissingCommits(db, region, since, now))
    await note('loc', t0 - 10, t0)
    await note('fra', t0 - 10, t0)
    const begun = await listMissingCommits(store.db)
    await note('loc', t0 - 5, t0 + 1)
    await clearMissingCommits(store.db, begun)
    expect(await listMissingCommits(store.db)).toEqual([
      { region: 'loc', since: t0 - 10, noted_at: t0 + 1, automatic: 0, not_before: 0, accounts: null },
    ])
  })

  test('no rebuild brings back what may still be written, whatever else is noted meanwhile', async ({ store }) => {
    const note = (now: number, more: object) => transact(store, (db) => noteMissingCommits(db, 'loc', t0, now, more))
    const readable = async (now: number) => (await listReadableCommits(store.db, now)).length
    await note(t0, { notBefore: t0 + 60 })
    await note(t0 + 1, { notBefore: t0 + 50 })
    await note(t0 + 2, {})
    expect([await readable(t0 + 59), await readable(t0 + 60)]).toEqual([0, 1])
  })

  test('control records again what only the numbers of nodes put in doubt; any other doubt is left to the operator', async ({
    store,
  }) => {
    const note = (region: string | null, isAutomatic: boolean) =>
      transact(store, (db) => noteMissingCommits(db, region, t0, t0, { isAutomatic }))
    const isAutomatic = async () => {
      const isToldSo = findMissing(await listMissingCommits(store.db), 'loc')?.isAutomatic
      const regions = (await listAutomaticCommits(store.db, t0)).map(({ region }) => region)
      expect(regions).toEqual(isToldSo ? ['loc'] : [])
      return isToldSo
    }
    await note('loc', true)
    await note('loc', true)
    expect(await isAutomatic()).toBe(true)
    await note(null, false)
    expect(await isAutomatic()).toBe(false)
    await clearMissingCommits(store.db, await listMissingCommits(store.db))
    await note('loc', false)
    await note('loc', true)
    expect(await isAutomatic()).toBe(false)
  })
})
