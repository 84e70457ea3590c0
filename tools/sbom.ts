/** Makes the software bill of materials of the package: what it installs, and what the console has built in. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

type Component = {
  readonly 'bom-ref': string
  readonly name: string
  readonly externalReferences?: readonly { readonly type: string }[]
}
type Sbom = {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

/** Returns a CycloneDX document. */
export function makeSbom(): Sbom {
  const everything = readSbom()
  const installed = readSbom('--omit', 'dev')
  const imports = importsOfConsole()
  const built = everything.components.filter(({ name }) => imports.has(name)).map((component) => component['bom-ref'])
  const kept = new Set([...installed.components.map((component) => component['bom-ref']), ...reachedFrom(everything, built)])
  // npm names the package after its folder.
  const component = { ...everything.metadata.component, name: 'inlet' }
  return {
    ...everything,
    metadata: { ...everything.metadata, component },
    components: everything.components
      .filter((each) => kept.has(each['bom-ref']))
      .map((each) => ({
        ...each,
        externalReferences: each.externalReferences?.filter(({ type }) => type !== 'distribution') ?? [],
      })),
    dependencies: everything.dependencies
      .filter(({ ref }) => kept.has(ref) || ref === component['bom-ref'])
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((each) => kept.has(each)) })),
  }
}

function readSbom(...options: readonly string[]): Sbom {
  return JSON.parse(
    execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', ...options], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 2 ** 20,
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
}

function importsOfConsole(): ReadonlySet<string> {
  const folder = join(root, 'console/src')
  const names = new Set<string>()
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/(?<!\.test)\.tsx?$/.test(path)) continue
    for (const [, name = ''] of readFileSync(join(folder, path), 'utf8').matchAll(
      /(?:from|import)\s+'((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^']*)?'/g,
    ))
      names.add(name)
  }
  return names
}

function reachedFrom({ dependencies }: Sbom, starts: readonly string[]): ReadonlySet<string> {
  const needs = new Map(dependencies.map(({ ref, dependsOn = [] }) => [ref, dependsOn]))
  const reached = new Set<string>()
  const visit = (ref: string) => {
    if (reached.has(ref)) return
    reached.add(ref)
    for (const each of needs.get(ref) ?? []) visit(each)
  }
  for (const ref of starts) visit(ref)
  return reached
}
