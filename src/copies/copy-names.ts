/**
 * Names in the copy store, all below `<prefix>/<node id>/`.
 *
 *     writer/<number>             what the node itself says of its objects: writer-state.ts
 *     fence/<number>              the writers that had begun before acknowledge nothing more: fences.ts
 *     <incarnation>/<number>      an object: copy-object.ts
 *
 * An incarnation is new for each start of the process. Its numbers begin at 0 and have no gap.
 */
const digits = 20

export function copyFolder(prefix: string, nodeId: string): string {
  return prefix === '' ? `${nodeId}/` : `${prefix}/${nodeId}/`
}

export function copyName(folder: string, incarnation: string, number: number): string {
  return `${folder}${incarnation}/${padded(number)}`
}

export function writerName(folder: string, number: number): string {
  return `${folder}writer/${padded(number)}`
}

/** Returns undefined for another name. */
export function parseWriterName(folder: string, name: string): number | undefined {
  const [, number] = name.startsWith(folder) ? (/^writer\/(\d{20})$/.exec(name.slice(folder.length)) ?? []) : []
  return number === undefined ? undefined : Number(number)
}

export function fenceName(folder: string, number: number): string {
  return `${folder}fence/${padded(number)}`
}

function padded(number: number): string {
  return String(number).padStart(digits, '0')
}
