import { readFile } from 'node:fs/promises'

/** Returns the version of this Inlet, as its package has it. */
export async function readVersion(): Promise<string> {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  return version
}
