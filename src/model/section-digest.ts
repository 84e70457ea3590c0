import { createHash } from 'node:crypto'

/** Identifies a set of sections with their versions. A node and control compare it to find out whether the node has the newest ones. */
export function digestSections(sections: Iterable<{ readonly name: string; readonly version: string }>): string {
  const lines = [...sections].map(({ name, version }) => `${name} ${version}\n`).toSorted()
  return createHash('sha256').update(lines.join('')).digest('base64url')
}
