import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { CrashLedger, listParked } from './crash-ledger.ts'

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
    const ledger = await afterCrash()
    expect(ledger.isSuspect('guilty')).toBe(false)
    const parked = await listParked(systemFiles, directory)
    expect(parked.get('guilty')?.reason).toMatch(/crashed 4 times/)
  })
})
