/** Checks a copy store: what it answers, and whether several writers of one name find out. It writes, and removes, a few small objects. */
import type { Config } from '#config/config.ts'
import { type CopyStoreConfig, openCopyStore } from '#copies/open-store.ts'
import { checkCopyStore, type StoreFinding } from '#copies/store-check.ts'
import { system } from '#lib/system.ts'
import { attempt, type Finding, fail, ok, warn } from './finding.ts'

const rounds = 10
const checkMsMax = 60_000
const check = 'copy store'

/** Checks that of the configuration, if there is one. */
export async function checkCopies(
  config: Omit<CopyStoreConfig, 'copyUrl'> & Pick<Config, 'copyUrl'>,
): Promise<readonly Finding[]> {
  const { copyUrl } = config
  if (copyUrl === null) return []
  const settings = { ...config, copyUrl }
  return attempt(
    check,
    'correct INLET_COPY_URL and INLET_COPY_… beside it; its key is INLET_COPY_ACCESS_KEY_ID: docs/acknowledgements.md',
    () => run(settings),
  )
}

async function run(config: CopyStoreConfig): Promise<readonly Finding[]> {
  const { store, prefix, close } = await openCopyStore(config, system)
  // Other timers do not keep the process alive.
  const alive = setInterval(() => undefined, 1_000)
  try {
    const signal = system.clock.timeout(checkMsMax)
    const folder = prefix === '' ? '' : `${prefix}/`
    const findings = await checkCopyStore({ store, folder, random: system.random, signal, rounds })
    return findings.map(toFinding)
  } finally {
    clearInterval(alive)
    close()
  }
}

function toFinding({ step, kind, problem }: StoreFinding): Finding {
  if (problem === null) return ok(check, step)
  const message = `${step}: ${problem}`
  return kind === 'needed'
    ? fail(check, message, 'use another store for copies: an acknowledgement would not hold')
    : warn(check, message, 'copies hold: reads fence a lost node as well; do not rely on this store for anything else')
}
