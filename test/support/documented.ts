import { readFileSync } from 'node:fs'

/** Returns the first code block after a heading of `docs/senders.md`. */
export function configurationOf(heading: string): string {
  const page = readFileSync(new URL('../../docs/senders.md', import.meta.url), 'utf8')
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))
  const code = /^```\w*\n(.*?)^```$/ms.exec(section ?? '')?.[1]
  if (code === undefined) throw new Error(`docs/senders.md has no configuration for ${heading}`)
  return code
}
