const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const idOrCommand = new RegExp(`((?:inlet(?: [a-z]+)+ )?${uuid})`)

/**
 * A reason in words. Things without a name are shown by the beginning of their id, as their own screens do; the whole stands on hover. A command
 * is shown whole, because people copy it.
 */
export function Reason({ text }: { readonly text: string }) {
  return (
    text
      .split(idOrCommand)
      // Every second part is an id, or a command with one.
      .map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same id may stand twice
          <code key={index} title={part}>
            {part.startsWith('inlet ') ? part : part.slice(0, 8)}
          </code>
        ),
      )
  )
}
