import { Buffer } from 'node:buffer'
import { isTakenName } from '#model/column-names.ts'
import { reservingEngines } from '#model/reserved-words.ts'
import type { Step } from '#views/json-path.ts'

type AddressedPath = { readonly steps: readonly Step[]; readonly path: string }

const NAME_CHARS_MAX = 60

/** Returns a name for each path, unique regardless of case. Names depend on the set of paths, not on their order. */
export function nameColumns(chosen: readonly AddressedPath[]): readonly string[] {
  const taken = new Set<string>()
  const names = new Map<AddressedPath, string>()
  for (const candidate of chosen.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const base = usable(nameOf(candidate.steps))
    let name = base
    for (let number = 2; taken.has(name.toLowerCase()); number += 1) name = `${base}_${number}`
    taken.add(name.toLowerCase())
    names.set(candidate, name)
  }
  return chosen.map((candidate) => names.get(candidate) ?? '')
}

/** Returns another name for one that a view cannot have, and for one that queries must quote. */
function usable(name: string): string {
  return isTakenName(name) || reservingEngines(name).length > 0 ? `${name}_` : name
}

/** Returns the names along the path in snake case; the last ones are kept if it is too long. */
function nameOf(steps: readonly Step[]): string {
  const words = steps.flatMap((step) => (step === 'each' || 'index' in step ? [] : [snake(step.key)]))
  while (words.length > 1 && Buffer.byteLength(words.join('_')) > NAME_CHARS_MAX) words.shift()
  const name = words.filter((word) => word !== '').join('_')
  const short = [...name].slice(0, NAME_CHARS_MAX).join('').replace(/_+$/, '')
  if (short === '') return 'value'
  return /^\p{N}/u.test(short) ? `n_${short}` : short
}

function snake(key: string): string {
  return key
    .toWellFormed()
    .normalize('NFKC')
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1_$2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1_$2')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .toLowerCase()
}
