/**
 * Adds to package-lock.json the optional platform packages that a partial mirror of the registry does not have.
 *
 * Behind such a mirror `npm install` leaves them out of the lock file. Then `npm ci` rejects it as incomplete, and other platforms cannot
 * install from it. Platform, processor and C library are derived from the name of the package.
 * Run after `npm install`: `npm run lock`.
 */
import { readFileSync, writeFileSync } from 'node:fs'

type Entry = {
  version: string
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
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
console.log(added.length === 0 ? 'the lock file is complete' : `added to the lock file: ${added.join(', ')}`)

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
