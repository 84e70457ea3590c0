/**
 * Adds to package-lock.json the optional platform packages that a partial mirror of the registry does not have.
 *
 * Behind such a mirror `npm install` leaves them out of the lock file. Then `npm ci` rejects it as incomplete, and other platforms cannot
 * install from it. Platform, processor and C library are derived from the name of the package.
 *
 * An entry without `integrity` is not checked by `npm ci`. The registry is asked for each that lacks it. What it does not have is listed, and
 * the exit code is 1: run this with the whole registry before a release.
 * Run after `npm install`: `npm run lock`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

type Entry = {
  version: string
  integrity?: string
  link?: boolean
  optional?: boolean
  dev?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

const operatingSystems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm64', 'arm', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'x64', 'wasm32']
const systemAliases: Record<string, string> = { windows: 'win32', osx: 'darwin' }

const path = new URL('../package-lock.json', import.meta.url)
const lock: { packages: Record<string, Entry> } = JSON.parse(readFileSync(path, 'utf8'))

const added: string[] = []
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    if (lock.packages[key] !== undefined) continue
    lock.packages[key] = {
      version: version.replace(/^[~^]/, ''),
      optional: true,
      ...(parent.dev === true ? { dev: true } : {}),
      ...platformOf(name),
    }
    added.push(name)
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
const unpinned = Object.entries(lock.packages).flatMap(([key, entry]) => {
  if (key === '' || entry.link === true || entry.integrity !== undefined) return []
  const name = key.slice(key.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const integrity = integrityOf(`${name}@${entry.version}`)
  if (integrity === undefined) return [`${name}@${entry.version}`]
  entry.integrity = integrity
  return []
})
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
console.log(added.length === 0 ? 'the lock file is complete' : `added to the lock file: ${added.join(', ')}`)
if (unpinned.length > 0) {
  console.error(`this registry does not have these, so their content is not pinned:\n  ${unpinned.join('\n  ')}`)
  process.exitCode = 1
}

/** Returns undefined if the registry does not have this version. */
function integrityOf(specifier: string): string | undefined {
  try {
    const said = execFileSync('npm', ['view', specifier, 'dist.integrity'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return said.trim() || undefined
  } catch {
    return undefined
  }
}

function platformOf(name: string): Pick<Entry, 'os' | 'cpu' | 'libc'> {
  const words = name.split(/[/-]/).map((word) => systemAliases[word] ?? word)
  const os = operatingSystems.find((system) => words.includes(system))
  const cpu = processors.find((processor) => words.includes(processor))
  return {
    os: [os ?? 'any-other'],
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(words.some((word) => word.startsWith('musl')) ? { libc: ['musl'] } : {}),
  }
}
