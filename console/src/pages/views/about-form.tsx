import { TextField } from '../../design/field.tsx'
import { Columns } from '../../design/layout.tsx'

/** Notes of people about a view. Tags are typed with commas between them. */
export type About = { readonly description: string; readonly tags: string }

export function splitTags(tags: string): readonly string[] {
  return [...new Set(tags.split(',').map((tag) => tag.trim()))].filter((tag) => tag !== '')
}

type AboutFieldsProps = { readonly about: About; readonly onChange: (about: About) => void }

export function AboutFields({ about, onChange }: AboutFieldsProps) {
  return (
    <Columns minimum={24}>
      <TextField
        label="Description"
        value={about.description}
        onChange={(description) => onChange({ ...about, description })}
        maxLength={1024}
        placeholder="Orders as they arrive"
      />
      <TextField
        label="Tags"
        value={about.tags}
        onChange={(tags) => onChange({ ...about, tags })}
        hint="With commas between them."
        placeholder="sales, finance"
      />
    </Columns>
  )
}
