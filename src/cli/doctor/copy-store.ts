/** Checks the copy store of this machine as its node does at the start. It writes, and removes, a few small objects. */
import type { Config } from '#config/config.ts'
import { type CopyStoreConfig, openCopyStore } from '#copies/open-store.ts'
import { checkCopyStore, type StoreFinding } from '#copies/store-check.ts'
import { system } from '#lib/system.ts'
import { attempt, type Finding, fail, ok, warn } from './finding.ts'

const check = 'copy store'
export const settingsAdvice =
  'correct INLET_COPY_URL and INLET_COPY_… beside it; its key is INLET_COPY_ACCESS_KEY_ID: docs/acknowledgements.md'

export type CopiesConfig = Omit<CopyStoreConfig, 'copyUrl'> & Pick<Config, 'copyUrl'>

/** Checks that of the configuration, if there is one. */
export async function checkCopies(config: CopiesConfig): Promise<readonly Finding[]> {
  const { copyUrl } = config
  if (copyUrl === null) return []
  return attempt(check, settingsAdvice, () => run({ ...config, copyUrl }))
}

async function run(config: CopyStoreConfig): Promise<readonly Finding[]> {
  const { store, prefix, close } = await openCopyStore(config, system)
  // Other timers do not keep the process alive.
  const alive = setInterval(() => undefined, 1_000)
  try {
    const { signal } = new AbortController()
    const findings = await checkCopyStore({ store, folder: folderOf(prefix), signal, ...system })
    return findings.map((finding) => toFinding(check, finding))
  } finally {
    clearInterval(alive)
    close()
  }
}

export function folderOf(prefix: string): string {
  return prefix === '' ? '' : `${prefix}/`
}

const advice = {
  needed: 'use another store for copies: an acknowledgement would not hold',
  fence: 'reads fence a lost node as well, so copies hold; no node is taken over by itself there',
  parts: 'give the bucket a lifecycle rule that removes unfinished uploads: docs/destinations.md',
  advice: 'Inlet works with it: docs/acknowledgements.md says what it means',
  left: 'list these names, and remove what is there',
} as const

/** Advice on a step that could not be tried. */
export const unknownAdvice = 'correct what it says, or wait until the store works, then try again: docs/acknowledgements.md'

export function toFinding(name: string, { step, kind, problem, isUnknown, note }: StoreFinding): Finding {
  if (problem === null) return ok(name, note === null ? step : `${step}: ${note}`)
  if (isUnknown) return (kind === 'needed' ? fail : warn)(name, `${step}: unknown: ${problem}`, unknownAdvice)
  return (kind === 'needed' ? fail : warn)(name, `${step}: ${problem}`, advice[kind])
}
