import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { CrashLedger, listParked, ParkedSegments } from './crash-ledger.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-crashes-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** Starts like a process after the previous one crashed. */
async function afterCrash(): Promise<CrashLedger> {
  const ledger = new CrashLedger({ directory, files: systemFiles, clock: systemClock })
  await ledger.load()
  return ledger
}

describe('CrashLedger', () => {
  test('a conversion that ended without a crash leaves no suspect', async () => {
    const ledger = await afterCrash()
    await ledger.begin('a')
    await ledger.end('a')
    expect((await afterCrash()).isSuspect('a')).toBe(false)
  })

  test('every segment that was being converted at a crash is a suspect until a conversion of it ends', async () => {
    const first = await afterCrash()
    await first.begin('guilty')
    await first.begin('innocent')
    const second = await afterCrash()
    expect([second.isSuspect('guilty'), second.isSuspect('innocent')]).toEqual([true, true])
    await second.begin('innocent')
    await second.end('innocent')
    await second.begin('guilty')
    const third = await afterCrash()
    expect([third.isSuspect('guilty'), third.isSuspect('innocent')]).toEqual([true, false])
  })

  test('a segment that keeps crashing the process while alone is parked with the reason', async () => {
    for (let crash = 0; crash < 4; crash++) await (await afterCrash()).begin('guilty')
    await afterCrash()
    const parked = await listParked(systemFiles, directory)
    expect(parked.get('guilty')?.reason).toMatch(/crashed 4 times/)
  })

  test('each start tries parked segments again, except one whose crash caused the start', async () => {
    const first = await afterCrash()
    await first.park('bad', 'a reason')
    for (let crash = 0; crash < 4; crash++) await (await afterCrash()).begin('guilty')
    const isParked = async (id: string) => (await listParked(systemFiles, directory)).has(id)
    await afterCrash()
    expect([await isParked('bad'), await isParked('guilty')]).toEqual([false, true])
    // A start for another reason: it is tried once more, alone. Killed before that, the next start tries it as well.
    for (let start = 0; start < 3; start++) {
      const ledger = await afterCrash()
      expect([await isParked('guilty'), ledger.isSuspect('guilty')]).toEqual([false, true])
    }
    await (await afterCrash()).begin('guilty')
    const ledger = await afterCrash()
    expect(await isParked('guilty')).toBe(true)
    // The operator may retry it in this run: it is still converted alone.
    expect(ledger.isSuspect('guilty')).toBe(true)
  })

  test('a record of a parked segment is read once, until its file is gone', async () => {
    let reads = 0
    const files = {
      ...systemFiles,
      read: (path: string) => {
        reads += 1
        return systemFiles.read(path)
      },
    }
    const ledger = await afterCrash()
    await ledger.park('bad', 'a reason')
    const parked = new ParkedSegments({ directory, files })
    for (let scan = 0; scan < 3; scan++) expect([...(await parked.read()).keys()]).toEqual(['bad'])
    expect(reads).toBe(1)
    await systemFiles.remove(join(directory, 'bad.parked.json'))
    expect((await parked.read()).size).toBe(0)
    await ledger.park('bad', 'another')
    expect((await parked.read()).get('bad')?.reason).toBe('another')
  })
})
