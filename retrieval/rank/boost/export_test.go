package boost

// Walk predicts by walking down each tree.
func (m *Model) Walk(row []float32) float64 {
	sum := m.base
	for _, t := range m.trees {
		at := int16(0)
		if len(t.splits) == 0 {
			at = -1
		}
		for at >= 0 {
			s := t.splits[at]
			if at = s.left; row[s.feature] > s.threshold {
				at = s.right
			}
		}
		sum += t.leaves[-1-at]
	}
	return sigmoid(float64(sum))
}

// Thresholds returns those of all splits.
func (m *Model) Thresholds() []float32 {
	var out []float32
	for _, t := range m.trees {
		for _, s := range t.splits {
			out = append(out, s.threshold)
		}
	}
	return out
}
