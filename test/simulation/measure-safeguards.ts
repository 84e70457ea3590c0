/** Takes safeguards out, each in a process of its own, and counts the histories until one finds it. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Safeguard, safeguards } from './safeguards.ts'

/** Stated, so that a run can be repeated. Any seed is as good. */
const firstSeed = 5_000
const histories = { enough: 200, ofOthers: 100 } as const

export type Measured = {
  /** The first history that breaks a law, from 1 on. Undefined if none does. */
  readonly foundBy: number | undefined
  /** At most. */
  readonly tried: number
  /** Output of the program, until then if `isShrunk` is not set. */
  readonly printed: string
}

/** `isShrunk`: waits for the list of faults that are enough. */
export async function measureWithout(safeguard: Safeguard, { isShrunk = false } = {}): Promise<Measured> {
  const { name, unfound } = safeguard
  const tried = safeguard.histories ?? (unfound === undefined ? histories.enough : histories.ofOthers)
  const options = ['--seed', String(firstSeed), '--steps', '2000', '--histories', String(tried), '--without', name]
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  let foundBy: number | undefined
  for await (const line of createInterface(child.stdout)) {
    lines.push(line)
    const [, found] = /^found by history (\d+);/.exec(line) ?? []
    if (found === undefined) continue
    foundBy = Number(found)
    if (!isShrunk) child.kill('SIGKILL')
  }
  if (foundBy === undefined && !lines.some((line) => line.startsWith('seed ')))
    throw new Error(`the simulation failed without: ${name}`)
  return { foundBy, tried, printed: lines.join('\n') }
}

/** Prints the table of docs/contributing/simulation.md. Returns whether those were found that the list says, and no others. */
export async function reportSafeguards(): Promise<boolean> {
  let isRight = true
  console.log('| taken out | found by history | of |\n|---|---|---|')
  for (const safeguard of safeguards) {
    const { foundBy, tried } = await measureWithout(safeguard)
    const isExpected = (foundBy === undefined) === (safeguard.unfound !== undefined)
    isRight &&= isExpected
    console.log(`| ${safeguard.name} | ${foundBy ?? 'none'}${isExpected ? '' : ', which is wrong'} | ${tried} |`)
  }
  return isRight
}
