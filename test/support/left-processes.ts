/**
 * Finds processes that outlive the test file that started them, also those whose parent has ended.
 *
 * Owns: a variable in the environment of each process that a test starts, which its children inherit.
 */
import { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { until } from './until.ts'

/** The supervisor of Inlet passes variables with this prefix to its children. */
const variable = 'NODE_TEST_PROCESS'
/** Test files run one after the other in a process. */
const mark = `${variable}=${process.pid}`
/** Children of a process that was killed end when they notice it. */
const graceMsMax = 20_000
/** The pool of delivery-node.ts, which all files of a test process share. It ends with that process. */
const shared = /\/convert-worker\.ts$/

let isLeftToFixtures = false

/** Fixtures of a file end what they have started after its last hook: nothing is looked for in this test process. */
export function leaveToFixtures(): void {
  isLeftToFixtures = true
}

type Left = { readonly pid: number; readonly command: string }
type Read = Left & { readonly parent: number; readonly isMarked: boolean }

/** Marks the processes that this one starts from now on. */
export function markChildren(): void {
  const prototype = ChildProcess.prototype as unknown as {
    spawn(options: { readonly envPairs?: readonly string[] }): number
    isMarked?: boolean
  }
  if (prototype.isMarked === true) return
  prototype.isMarked = true
  const { spawn } = prototype
  prototype.spawn = function (this: ChildProcess, options) {
    const others = (options.envPairs ?? []).filter((pair) => !pair.startsWith(`${variable}=`))
    return spawn.call(this, { ...options, envPairs: [...others, mark] })
  }
}

/** Kills the marked processes that have not ended within the time, with their descendants, and throws an error with their commands. */
export async function failIfRunning(graceMs = graceMsMax): Promise<void> {
  if (isLeftToFixtures) return
  await until('the processes to end', () => running().length === 0, graceMs).catch(() => undefined)
  const left = running()
  if (left.length === 0) return
  await until('the killed processes to end', () => {
    const killed = running()
    for (const { pid } of killed) kill(pid)
    return killed.length === 0
  })
  throw new Error(
    `processes ran on after the test file that started them:\n${left.map(({ pid, command }) => `${pid} ${command}`).join('\n')}`,
  )
}

/** Returns the marked processes that run, and their descendants. None where the system has no /proc. */
function running(): readonly Left[] {
  const pids = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []
  const all = pids.flatMap((pid) => readProcess(pid) ?? [])
  const children = Map.groupBy(all, ({ parent }) => parent)
  const withDescendants = (each: Read): readonly Read[] => [each, ...(children.get(each.pid) ?? []).flatMap(withDescendants)]
  return [...new Set(all.filter(({ isMarked }) => isMarked).flatMap(withDescendants))]
}

/** Returns undefined if the process has ended, belongs to somebody else, or is shared. */
function readProcess(pid: string): Read | undefined {
  const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'latin1')
  try {
    const command = read('cmdline').split('\0').slice(0, -1).join(' ')
    // The name in parentheses may have spaces.
    const [state, parent] = read('stat').split(') ').at(-1)?.split(' ') ?? []
    const isMarked = read('environ').split('\0').includes(mark)
    return state === 'Z' || shared.test(command) ? undefined : { pid: Number(pid), parent: Number(parent), command, isMarked }
  } catch {
    return undefined
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
