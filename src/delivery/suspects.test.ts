import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { listParked, Suspects } from './suspects.ts'

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-suspects-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** What a process finds that starts after the last one died. */
async function afterCrash(): Promise<Suspects> {
  const suspects = new Suspects({ directory, files: systemFiles, clock: systemClock })
  await suspects.load()
  return suspects
}

describe('Suspects', () => {
  test('what ended well or badly with the process alive is no suspect', async () => {
    const suspects = await afterCrash()
    await suspects.begin('a')
    await suspects.end('a')
    expect((await afterCrash()).isSuspect('a')).toBe(false)
  })

  test('all that were in work at a crash are suspects, and one that is converted then is cleared', async () => {
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

  test('one that kills the process again and again while alone is parked, with the reason', async () => {
    for (let crash = 0; crash < 4; crash++) await (await afterCrash()).begin('guilty')
    const suspects = await afterCrash()
    expect(suspects.isSuspect('guilty')).toBe(false)
    const parked = await listParked(systemFiles, directory)
    expect(parked.get('guilty')?.reason).toMatch(/died 4 times/)
  })
})
